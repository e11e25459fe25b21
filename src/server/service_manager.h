#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"

namespace fermata {

// The service manager that started us, as far as it wants to hear: systemd's protocol, a datagram to $NOTIFY_SOCKET
// (sd_notify(3), "Standalone Implementations"). Without that variable all of it does nothing. It never
// waits, and nobody hears of a manager that does not listen.
class ServiceManager {
 public:
  // Of this process's environment.
  static ServiceManager of_environment();
  ServiceManager(std::string socket, std::optional<Duration> watchdog)
      : socket_(std::move(socket)), watchdog_(watchdog) {}

  bool is_there() const { return !socket_.empty(); }
  void loading() { say("STATUS=loading the model"); }
  void ready(std::string_view what_is_served);
  void stopping() { say("STOPPING=1\nSTATUS=ending what runs"); }
  // To be said again within watchdog(), or the manager ends the process and starts another.
  void alive() { say("WATCHDOG=1"); }
  std::optional<Duration> watchdog() const { return watchdog_; }

 private:
  void say(std::string_view state) const;

  std::string socket_;  // empty: nobody listens; "@name" is one of Linux's abstract ones
  std::optional<Duration> watchdog_;
};

}  // namespace fermata
