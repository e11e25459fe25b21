#include "runtime/roster.h"

#include <utility>

#include "base/check.h"

namespace fermata {

Status status_of(const Live& live) {
  const Generation& g = *live.generation;
  Status status;
  status.id = g.id();
  status.state = g.state();
  status.wait_reason = g.wait_reason();
  status.end_reason = g.end_reason();
  status.n_prompt = g.journal().n_prompt();
  status.n_cached = g.n_cached();
  status.n_generated = g.journal().n_generated();
  status.computed = g.computed();
  return status;
}

Live& Roster::add(Live live) {
  const GenerationId id = live.generation->id();
  const auto [place, added] = lives_.emplace(id, std::move(live));
  FERMATA_CHECK(added);
  return place->second;
}

Live* Roster::find(GenerationId id) {
  const auto place = lives_.find(id);
  return place == lives_.end() ? nullptr : &place->second;
}

std::optional<Status> Roster::ended(GenerationId id) const {
  const auto place = ended_.find(id);
  if (place == ended_.end()) return std::nullopt;
  return place->second;
}

void Roster::for_each(const std::function<void(Live&)>& visit) {
  for (auto& [id, live] : lives_) visit(live);
}

void Roster::for_each(const std::function<void(const Live&)>& visit) const {
  for (const auto& [id, live] : lives_) visit(live);
}

void Roster::deliver(Live& live) {
  for (Event& event : live.generation->take_events()) live.unsent.push_back(std::move(event));
  while (!live.unsent.empty() && live.events->push(live.unsent.front())) live.unsent.pop_front();
}

void Roster::deliver() {
  for (auto place = lives_.begin(); place != lives_.end();) {
    Live& live = place->second;
    deliver(live);
    if (live.is(State::kFinished) && live.unsent.empty()) {
      live.events->close();
      remember_end(status_of(live));
      place = lives_.erase(place);
    } else {
      ++place;
    }
  }
}

void Roster::remember_end(const Status& status) {
  if (ended_order_.size() >= limits::kEndedKept) {
    ended_.erase(ended_order_.front());
    ended_order_.pop_front();
  }
  ended_.emplace(status.id, status);
  ended_order_.push_back(status.id);
}

}  // namespace fermata
