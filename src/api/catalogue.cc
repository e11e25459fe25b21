#include "api/catalogue.h"

#include <algorithm>

#include "api/names.h"
#include "base/limits.h"

namespace fermata::api {
namespace {

static_assert(limits::kFinishedKeptMs % 60'000 == 0, "said in minutes");
// What an error says of ended generations.
std::string kept_in_words() {
  return "an ended one is kept for " + std::to_string(limits::kFinishedKeptMs / 60'000) + " minutes, " +
         std::to_string(limits::kFinishedKept) + " of them at most";
}

Error gone(std::string_view what, std::string_view name) {
  return {Code::kGone, std::string(what) + " ended and is no longer kept: " + kept_in_words(), std::string(name),
          false};
}

}  // namespace

void Catalogue::file(const Entry& dossier) {
  by_id_[dossier->id()] = dossier;
  in_order_.push_back(dossier);
  if (!dossier->client_id.empty()) by_client_id_[{dossier->tenant, dossier->client_id}] = dossier->id();
}

// ------------------------------------------------------------------------------------------------------------- finding

Result<Catalogue::Entry> Catalogue::find(std::string_view name, const Principal& who) const {
  std::string id(name);
  if (name.starts_with(kClientPrefix)) {
    const auto entry = by_client_id_.find({who.tenant, std::string(name.substr(kClientPrefix.size()))});
    if (entry != by_client_id_.end()) id = entry->second;
  } else {
    for (const std::string_view prefix : {kChatPrefix, kTextPrefix})
      if (name.starts_with(prefix)) id = std::string(kGenerationPrefix).append(name.substr(prefix.size()));
  }
  const auto place = by_id_.find(id);
  if (place != by_id_.end()) {
    if (place->second->tenant != who.tenant) return unknown_generation(name, who);
    return place->second;
  }
  if (is_forgotten(id, who)) return gone("the generation", name);
  return unknown_generation(name, who);
}

Error Catalogue::unknown_generation(std::string_view name, const Principal& who) const {
  std::string message = "there is no such generation; ";
  if (by_client_id_.contains({who.tenant, std::string(name)}))
    message += "a client_id is named " + std::string(kClientPrefix) + "ID, here " + std::string(kClientPrefix) +
               std::string(name);
  else
    message += kept_in_words() + ", and none outlives the server";
  return {Code::kNotFound, std::move(message), std::string(name), false};
}

Result<Catalogue::Entry> Catalogue::find_pause(std::string_view pause_id, const Principal& who) const {
  const Error unknown{Code::kNotFound, "there is no such pause", std::string(pause_id), false, "pause_id"};
  const auto entry = by_pause_.find(pause_id);
  if (entry == by_pause_.end() && forgotten_pauses_.contains({who.tenant, std::string(pause_id)}))
    return gone("the generation of this pause", pause_id);
  if (entry == by_pause_.end()) return unknown;
  Result<Entry> found = find(entry->second, who);
  if (!found && found.error().code == Code::kNotFound) return unknown;
  return found;
}

Catalogue::Entry Catalogue::find_client_id(const std::string& tenant, const std::string& client_id) const {
  const auto entry = by_client_id_.find({tenant, client_id});
  if (entry == by_client_id_.end()) return nullptr;
  const auto place = by_id_.find(entry->second);
  return place == by_id_.end() ? nullptr : place->second;
}

bool Catalogue::is_forgotten(std::string_view id, const Principal& who) const {
  return forgotten_.contains({who.tenant, std::string(id)});
}

std::vector<Catalogue::Entry> Catalogue::all(const Principal& who) const {
  std::vector<Entry> seen;
  for (const Entry& dossier : in_order_)
    if (dossier->tenant == who.tenant) seen.push_back(dossier);
  return seen;
}

// ---------------------------------------------------------------------------------------------------------- forgetting

void Catalogue::forget(std::span<const Entry> dossiers) {
  for (const Entry& dossier : dossiers) forget_names(*dossier);
  const std::set<Entry> gone(dossiers.begin(), dossiers.end());
  std::erase_if(in_order_, [&gone](const Entry& dossier) { return gone.contains(dossier); });
}

// By its own names: a walk over all names for each that goes would hold up everybody.
void Catalogue::forget_names(const Dossier& dossier) {
  const std::string& id = dossier.id();
  for (const PauseTicket& ticket : dossier.recording.tickets()) {
    by_pause_.erase(ticket.id);
    // Of those that the server makes and ends there may be thousands, which nobody resumes by their names.
    if (interrupt_class(ticket.record.reason) != InterruptClass::kResource)
      forgotten_pauses_.note({dossier.tenant, ticket.id});
  }
  const auto named = by_client_id_.find({dossier.tenant, dossier.client_id});
  if (named != by_client_id_.end() && named->second == id) by_client_id_.erase(named);
  forgotten_.note({dossier.tenant, id});
  if (!dossier.client_id.empty()) forgotten_.note({dossier.tenant, std::string(kClientPrefix) + dossier.client_id});
  by_id_.erase(id);
}

void Catalogue::Forgotten::note(Name name) {
  if (!names_.insert(name).second) return;
  in_order_.push_back(std::move(name));
  if (in_order_.size() <= limits::kForgottenIdsMax) return;
  names_.erase(in_order_.front());
  in_order_.pop_front();
}

}  // namespace fermata::api
