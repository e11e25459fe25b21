#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "api/desk.h"
#include "api/event_filter.h"
#include "api/feed.h"

namespace fermata::api {

// What all generations say, to all who follow: an entry becomes text once, however many want it, and not at all if
// nobody does. io thread.
class Broadcast : public std::enable_shared_from_this<Broadcast> {
 public:
  // As long as it lives its client is told. May outlive the broadcast.
  class Following {
   public:
    Following() = default;
    Following(std::weak_ptr<Broadcast> broadcast, std::uint64_t number)
        : broadcast_(std::move(broadcast)), number_(number) {}
    ~Following() { end(); }
    Following(Following&& other) noexcept { *this = std::move(other); }
    Following& operator=(Following&& other) noexcept;
    Following(const Following&) = delete;
    Following& operator=(const Following&) = delete;

   private:
    void end();

    std::weak_ptr<Broadcast> broadcast_;
    std::uint64_t number_ = 0;
  };

  // Of all that this desk will ever tell; the desk outlives it.
  static std::shared_ptr<Broadcast> of(Desk& desk);

  // `take` is called with each announcement that the filter wants, `on_end` once when the server stops. kBusy if the
  // key or the server has too many who follow.
  Result<Following> follow(const Principal& who, EventFilter filter, std::function<void(const Announcement&)> take,
                           std::function<void()> on_end = {});

 private:
  struct Follower {
    std::string key;  // tenant and name of who follows
    EventFilter filter;
    std::function<void(const Announcement&)> take;
    std::function<void()> on_end;
  };

  explicit Broadcast(Desk& desk) : desk_(desk) {}
  void tell(const Dossier& dossier, std::size_t place) const;
  void end() const;

  Desk& desk_;
  std::map<std::uint64_t, Follower> followers_;
  std::uint64_t next_number_ = 1;
};

}  // namespace fermata::api
