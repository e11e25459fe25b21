#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace fermata::api {

// An event as text: made once, shared by all who are told.
struct AnnouncedEvent {
  std::string_view type;  // of static storage
  std::string data;       // JSON
};
using Announcement = std::shared_ptr<const AnnouncedEvent>;
inline Announcement announce(std::string_view type, std::string data) {
  return std::make_shared<const AnnouncedEvent>(AnnouncedEvent{type, std::move(data)});
}

// Events on their way to a client that may read slowly: what it has no room for is lost, and told as a number, where it
// is missing: before the next event that goes out. io thread.
class Feed {
 public:
  // Takes it if there is room: false if not.
  using Offer = std::function<bool(const Announcement&)>;
  explicit Feed(Offer offer) : offer_(std::move(offer)) {}

  void take(const Announcement& event) {
    tell_lost();
    if (n_lost_ > 0 || !offer_(event)) ++n_lost_;
  }
  // To be called when there is room, in case that no event follows. True: something was lost, and there was room for
  // it.
  bool tell_lost() {
    if (n_lost_ == 0) return false;
    if (!offer_(announce("lost", R"({"type":"lost","n":)" + std::to_string(n_lost_) + "}"))) return false;
    n_lost_ = 0;
    return true;
  }

 private:
  Offer offer_;
  std::uint64_t n_lost_ = 0;  // since it was told
};

}  // namespace fermata::api
