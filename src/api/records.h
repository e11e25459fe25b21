#pragma once

#include <array>
#include <string_view>

#include "api/desk.h"
#include "api/dossier.h"
#include "api/openai/json.h"

namespace fermata::api {

// As docs/api.md has them. What is held back is in neither: counts of it are.
json::object generation_object(const Desk& desk, const Dossier& dossier);
json::object pause_object(const Desk& desk, const Dossier& dossier, const PauseTicket& ticket);
// What could come next in a paused one, for `who`. While text was held back where it was looked at, that would tell of
// the text: only a reviewer sees it. The desk is ready.
json::object inspection_object(Desk& desk, const Dossier& dossier, const Inspection& seen, const Principal& who);
// An entry of the log as /events tells it: {"type", "generation", …}.
json::object entry_object(const Desk& desk, const Dossier& dossier, std::size_t entry);
// The same as /v1/events tells it: with what its generation is known by, so that who follows all can tell them apart.
json::object announced_object(const Desk& desk, const Dossier& dossier, std::size_t entry);
// Of a generation that stands in this pause.
Usage usage_at(const Dossier& dossier, const PauseRecord& record);
// "id", "token", "bytes" of a token: as OpenAI's log-probabilities have them, also where it is no text by itself.
void add_token(json::object& to, TokenId token, const Vocabulary& vocabulary);
inline constexpr std::array<std::string_view, 7> kEntryTypes{"created", "running", "token",   "paused",
                                                             "resumed", "rewound", "finished"};
std::string_view entry_type(const LogEntry& entry);

}  // namespace fermata::api
