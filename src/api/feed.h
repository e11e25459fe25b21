#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace fermata::api {

// Events on their way to a client that may read slowly: what it has no room for is lost, and told as a number, where it
// is missing: before the next event that goes out. io thread.
class Feed {
 public:
  // Takes a message of this type if there is room: false if not.
  using Offer = std::function<bool(std::string_view type, std::string data)>;
  explicit Feed(Offer offer) : offer_(std::move(offer)) {}

  void take(std::string_view type, std::string data) {
    tell_lost();
    if (n_lost_ > 0 || !offer_(type, std::move(data))) ++n_lost_;
  }
  // To be called when there is room, in case that no event follows. True: something was lost, and there was room for
  // it.
  bool tell_lost() {
    if (n_lost_ == 0 || !offer_("lost", R"({"type":"lost","n":)" + std::to_string(n_lost_) + "}")) return false;
    n_lost_ = 0;
    return true;
  }

 private:
  Offer offer_;
  std::uint64_t n_lost_ = 0;  // since it was told
};

}  // namespace fermata::api
