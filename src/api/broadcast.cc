#include "api/broadcast.h"

#include <algorithm>

#include "api/records.h"
#include "base/limits.h"

namespace fermata::api {

std::shared_ptr<Broadcast> Broadcast::of(Desk& desk) {
  std::shared_ptr<Broadcast> broadcast(new Broadcast(desk));
  desk.follow([broadcast](const Dossier& dossier, std::size_t place) { broadcast->tell(dossier, place); },
              [broadcast] { broadcast->end(); });
  return broadcast;
}

Result<Broadcast::Following> Broadcast::follow(const Principal& who, EventFilter filter,
                                               std::function<void(const Announcement&)> take,
                                               std::function<void()> on_end) {
  const std::string key = who.tenant + "/" + who.name;
  const auto n_of_key = static_cast<std::size_t>(
      std::count_if(followers_.begin(), followers_.end(), [&](const auto& entry) { return entry.second.key == key; }));
  if (n_of_key >= limits::kFollowersPerKeyMax)
    return Error{Code::kBusy, "this key follows all events too many times; end some, or follow one generation each",
                 "limit " + std::to_string(limits::kFollowersPerKeyMax), true};
  if (followers_.size() >= limits::kFollowersMax)
    return Error{Code::kBusy, "too many follow all events; try again later",
                 "limit " + std::to_string(limits::kFollowersMax), true};
  followers_.emplace(next_number_, Follower{key, std::move(filter), std::move(take), std::move(on_end)});
  return Following(weak_from_this(), next_number_++);
}

void Broadcast::tell(const Dossier& dossier, std::size_t place) const {
  Announcement announcement;
  for (const auto& [number, follower] : followers_) {
    if (!follower.filter.wants(dossier, place)) continue;
    if (!announcement)
      announcement =
          announce(entry_type(dossier.recording.log()[place]), to_text(announced_object(desk_, dossier, place)));
    follower.take(announcement);
  }
}

void Broadcast::end() const {
  for (const auto& [number, follower] : followers_)
    if (follower.on_end) follower.on_end();
}

Broadcast::Following& Broadcast::Following::operator=(Following&& other) noexcept {
  if (this == &other) return *this;
  end();
  broadcast_ = std::exchange(other.broadcast_, {});
  number_ = other.number_;
  return *this;
}

void Broadcast::Following::end() {
  if (const auto alive = broadcast_.lock()) alive->followers_.erase(number_);
}

}  // namespace fermata::api
