#include "api/records.h"

#include <algorithm>
#include <cmath>

#include "base/limits.h"

namespace fermata::api {
namespace {

double in_ms(Duration duration) { return std::round(duration.ms() * 1000) / 1000; }

Usage usage_so_far(const Dossier& dossier) {
  const Recording& recording = dossier.recording;
  if (recording.end()) return usage_of(*recording.end());
  if (const PauseTicket* pause = recording.pause()) return usage_at(dossier, pause->record);
  Usage usage;
  usage.n_prompt = static_cast<Position>(dossier.prompt.size());
  usage.n_generated = static_cast<Position>(recording.text().rows.size());
  return usage;
}

json::value text_or_null(std::string_view text) { return text.empty() ? json::value() : json::value(text); }

json::array tags_of(const Dossier& dossier) {
  json::array tags;
  for (const std::string& tag : dossier.options.tags) tags.emplace_back(tag);
  return tags;
}

// What its request called it, as far as it did.
void add_names(json::object& to, const Dossier& dossier) {
  if (!dossier.head.session.empty()) to["session"] = dossier.head.session;
  if (!dossier.client_id.empty()) to["client_id"] = dossier.client_id;
  if (!dossier.options.tags.empty()) to["tags"] = tags_of(dossier);
}

// To look at it may have computed the row that was missing when it was frozen.
PauseTicket as_seen(PauseTicket ticket, const Inspection& seen) {
  PauseRecord& record = ticket.record;
  if (seen.has_logits && !record.has_logits) record.computed = record.at;
  record.has_logits = seen.has_logits;
  return ticket;
}

}  // namespace

Usage usage_at(const Dossier& dossier, const PauseRecord& record) {
  Usage usage;
  usage.n_prompt = static_cast<Position>(dossier.prompt.size());
  usage.n_generated = record.at - usage.n_prompt;
  return usage;
}

json::object pause_object(const Desk& desk, const Dossier& dossier, const PauseTicket& ticket) {
  const PauseRecord& record = ticket.record;
  json::object object;
  object["id"] = dossier.id();
  object["pause_id"] = ticket.id;
  object["version"] = dossier.recording.version();
  object["state"] = "paused";
  object["at"] = json::object{{"token", record.at}, {"byte", record.n_bytes_sent + record.n_bytes_held}};
  object["sent_bytes"] = record.n_bytes_sent;
  object["held_bytes"] = record.n_bytes_held;
  object["durable"] = false;
  object["exact"] = desk.exactness().with_neighbours;
  object["reason"] = json::object{{"class", to_string(interrupt_class(record.reason))},
                                  {"why", to_string(record.reason)},
                                  {"rule", nullptr},
                                  {"evidence", nullptr}};
  object["action_requests"] = json::array();
  object["review_configs"] = json::array();
  object["paused_at"] = desk.unix_time(ticket.reached);
  object["expires_at"] = desk.unix_time(ticket.reached + milliseconds(limits::kPauseAgeMaxMs));
  object["on_expiry"] = "cancel";
  object["reach_ms"] = in_ms(record.reach);
  object["computed"] = record.computed;
  object["has_logits"] = record.has_logits;
  return object;
}

json::object generation_object(const Desk& desk, const Dossier& dossier) {
  const Recording& recording = dossier.recording;
  const PauseTicket* pause = recording.pause();
  json::object object;
  object["id"] = dossier.id();
  object["object"] = "generation";
  object["answer_id"] = dossier.head.id;
  object["model"] = dossier.head.model;
  object["state"] = to_string(recording.state());
  object["wait_reason"] =
      recording.wait_reason() == WaitReason::kNone ? json::value() : json::value(to_string(recording.wait_reason()));
  object["end_reason"] = recording.end() ? json::value(to_string(recording.end()->reason)) : json::value();
  object["session"] = text_or_null(dossier.head.session);
  object["client_id"] = text_or_null(dossier.client_id);
  object["tags"] = tags_of(dossier);
  object["metadata"] = dossier.options.metadata;
  object["priority"] = dossier.priority;
  object["seed"] = dossier.head.seed;
  object["text"] = recording.text().text;
  object["version"] = dossier.recording.version();
  object["usage"] = usage_object(usage_so_far(dossier));
  object["pause"] = pause ? json::value(pause_object(desk, dossier, *pause)) : json::value();
  object["anchors"] = json::array();
  object["parent"] = text_or_null(dossier.parent);
  object["forked_at"] = dossier.parent.empty() ? json::value() : json::value(dossier.forked_at);
  object["created_at"] = desk.unix_time(dossier.created);
  object["changed_at"] = desk.unix_time(std::max(dossier.created, recording.last_change()));
  object["n_events"] = recording.log().size();
  return object;
}

json::object inspection_object(Desk& desk, const Dossier& dossier, const Inspection& seen, const Principal& who) {
  // Not from the recording: it may have been resumed behind the look, and what gave way to others has no pause there.
  const bool withheld = seen.n_bytes_held > 0 && !who.may(Scope::kReview);
  const bool shown = seen.has_logits && !withheld;
  json::array next;
  for (const TokenLogprob& candidate : shown ? seen.next : std::vector<TokenLogprob>()) {
    json::object one;
    add_token(one, candidate.token, desk.core().vocabulary());
    one["logprob"] = logprob_number(candidate.logprob);
    next.emplace_back(std::move(one));
  }
  const PauseTicket* ticket = dossier.recording.pause();
  const json::value pause = ticket ? json::value(pause_object(desk, dossier, as_seen(*ticket, seen))) : json::value();
  json::object object{{"object", "inspection"}, {"id", dossier.id()}, {"has_logits", seen.has_logits}};
  object["pause"] = pause;
  object["withheld"] = withheld;
  object["entropy"] = shown ? json::value(seen.next_entropy) : json::value();
  object["next"] = std::move(next);
  return object;
}

void add_token(json::object& to, TokenId token, const Vocabulary& vocabulary) {
  const std::string_view bytes = vocabulary.bytes(token);
  json::array numbers;
  for (const char byte : bytes) numbers.emplace_back(static_cast<unsigned char>(byte));
  to["id"] = raw(token);
  to["token"] = bytes_as_text(bytes);
  to["bytes"] = std::move(numbers);
}

std::string_view entry_type(const LogEntry& entry) { return kEntryTypes.at(entry.what.index()); }

json::object entry_object(const Desk& desk, const Dossier& dossier, std::size_t place) {
  const Recording& recording = dossier.recording;
  const LogEntry& entry = recording.log()[place];
  json::object object;
  object["type"] = entry_type(entry);
  object["generation"] = dossier.id();
  object["seq"] = place;
  object["time"] = desk.unix_time(entry.time);
  if (std::holds_alternative<LogEntry::Created>(entry.what)) {
    object["answer_id"] = dossier.head.id;
    add_names(object, dossier);
  } else if (const auto* text = std::get_if<TextEvent>(&entry.what)) {
    object["text"] = text->text;
    object["first_token"] = text->first_position;
    json::array tokens;
    const std::size_t n_whole = text->rows.size() - (text->n_bytes_cut > 0 ? 1 : 0);
    for (std::size_t i = 0; i < n_whole; ++i) tokens.emplace_back(raw(text->rows[i].token));
    object["tokens"] = std::move(tokens);
  } else if (const auto* paused = std::get_if<LogEntry::Paused>(&entry.what)) {
    object["pause"] = pause_object(desk, dossier, recording.tickets()[paused->ticket]);
  } else if (const auto* rewind = std::get_if<RewindEvent>(&entry.what)) {
    TextCount left;
    left.add(recording.text_until(place + 1).text);
    object["version"] = rewind->version;
    object["first_token"] = rewind->n_rows;
    object["to_byte"] = left.n_bytes;
    object["to_utf16"] = left.n_utf16;
  } else if (const auto* finish = std::get_if<FinishEvent>(&entry.what)) {
    object["end_reason"] = to_string(finish->reason);
    object["usage"] = usage_object(usage_of(*finish));
    if (!finish->stop_string.empty()) object["stop_string"] = finish->stop_string;
    if (!finish->error.message.empty()) object["error"] = error_object(finish->error)["error"];
  }
  return object;
}

json::object announced_object(const Desk& desk, const Dossier& dossier, std::size_t place) {
  json::object object = entry_object(desk, dossier, place);
  add_names(object, dossier);
  return object;
}

}  // namespace fermata::api
