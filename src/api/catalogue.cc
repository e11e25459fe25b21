#include "api/catalogue.h"

#include <algorithm>

#include "api/names.h"
#include "base/limits.h"

namespace fermata::api {

void Catalogue::file(const Entry& dossier) {
  by_id_[dossier->id()] = dossier;
  in_order_.push_back(dossier);
  if (!dossier->client_id.empty()) by_client_id_[{dossier->tenant, dossier->client_id}] = dossier->id();
}

// ------------------------------------------------------------------------------------------------------------- finding

Result<Catalogue::Entry> Catalogue::find(std::string_view name, const Principal& who) const {
  const Error unknown{Code::kNotFound, "there is no such generation", std::string(name), false};
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
    if (place->second->tenant != who.tenant) return unknown;
    return place->second;
  }
  if (is_forgotten(id, who))
    return Error{Code::kGone, "the generation ended and is no longer kept", std::string(name), false};
  return unknown;
}

Result<Catalogue::Entry> Catalogue::find_pause(std::string_view pause_id, const Principal& who) const {
  const Error unknown{Code::kNotFound, "there is no such pause", std::string(pause_id), false, "pause_id"};
  const auto entry = by_pause_.find(pause_id);
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

void Catalogue::forget(const Entry& dossier) {
  std::erase(in_order_, dossier);
  forget_names(*dossier);
}

void Catalogue::forget_if(const std::function<bool(const Entry&)>& is_over) {
  std::erase_if(in_order_, [&](const Entry& dossier) {
    if (!is_over(dossier)) return false;
    forget_names(*dossier);
    return true;
  });
}

// By its own names: a walk over all names for each that goes would hold up everybody.
void Catalogue::forget_names(const Dossier& dossier) {
  const std::string id = dossier.id();
  for (const PauseTicket& ticket : dossier.recording.tickets()) by_pause_.erase(ticket.id);
  const auto named = by_client_id_.find({dossier.tenant, dossier.client_id});
  if (named != by_client_id_.end() && named->second == id) by_client_id_.erase(named);
  note_forgotten({dossier.tenant, id});
  if (!dossier.client_id.empty()) note_forgotten({dossier.tenant, std::string(kClientPrefix) + dossier.client_id});
  by_id_.erase(id);
}

void Catalogue::note_forgotten(Name name) {
  if (!forgotten_.insert(name).second) return;
  forgotten_order_.push_back(std::move(name));
  if (forgotten_order_.size() <= limits::kForgottenIdsMax) return;
  forgotten_.erase(forgotten_order_.front());
  forgotten_order_.pop_front();
}

}  // namespace fermata::api
