#include "server/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/regular_file.h"

namespace fermata {
namespace {

constexpr std::int64_t kWatchdogUsMax = 24LL * 3600 * 1'000'000;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// WATCHDOG_PID says whose it is: a child of that process inherits the variables.
std::optional<Duration> watchdog_of_environment() {
  const std::string pid = variable("WATCHDOG_PID");
  if (!pid.empty() && pid != std::to_string(getpid())) return std::nullopt;
  const std::string text = variable("WATCHDOG_USEC");
  std::int64_t n_us = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n_us);
  if (error != std::errc() || end != text.data() + text.size() || n_us <= 0 || n_us > kWatchdogUsMax)
    return std::nullopt;
  return Duration{n_us * 1000};
}

}  // namespace

ServiceManager ServiceManager::of_environment() { return {variable("NOTIFY_SOCKET"), watchdog_of_environment()}; }

void ServiceManager::ready(std::string_view what_is_served) {
  std::string line(what_is_served.substr(0, what_is_served.find('\n')));
  say("READY=1\nSTATUS=serving " + line);
}

void ServiceManager::say(std::string_view state) const {
  sockaddr_un address{};
  if (socket_.size() < 2 || socket_.size() >= sizeof address.sun_path) return;
  if (socket_[0] != '/' && socket_[0] != '@') return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  if (socket_[0] == '@') address.sun_path[0] = '\0';
  const Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return;
  const auto n = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  (void)sendto(socket.number(), state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address),
               n);
}

}  // namespace fermata
