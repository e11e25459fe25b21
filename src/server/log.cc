#include "server/log.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

#include "base/clock.h"

namespace fermata {
namespace {

// A pipe that is ready takes so much without blocking (PIPE_BUF), and does not tear it apart.
constexpr std::size_t kWriteBytes = 4096;
// A terminal that is ready takes this much (n_tty of Linux); more would block though it is ready.
constexpr std::size_t kTerminalBytes = 256;
constexpr Duration kLook = milliseconds(200);

std::int64_t unix_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

}  // namespace

Log::Log(LogOptions options, int descriptor) : options_(options), descriptor_(descriptor) {
  if (options_.level != LogLevel::kOff) writer_ = std::thread([this] { write_all(); });
}

Log::~Log() {
  is_ending_ = true;
  lines_.close();
  if (writer_.joinable()) writer_.join();
}

void Log::say(LogLevel level, std::string_view message) {
  if (level >= options_.level && level != LogLevel::kOff) put(log_line(options_.format, unix_ms(), level, message));
}

void Log::answered(const api::AnsweredRequest& request) {
  const LogLevel level = level_of(request);
  if (level >= options_.level) put(log_line(options_.format, unix_ms(), level, request));
}

void Log::put(std::string line) {
  if (!lines_.push(std::move(line))) n_lost_.fetch_add(1);
}

void Log::write_all() {
  // A reader that is gone ends no server.
  sigset_t broken_pipe;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
  std::string lines;
  while (!lines_.closed_and_empty()) {
    std::optional<std::string> line = lines_.pop(kLook);
    for (; line; line = lines_.try_pop()) {
      if (!lines.empty() && lines.size() + line->size() > kWriteBytes) {
        if (!write_out(lines)) return;
        lines.clear();
      }
      lines += *line;
    }
    if (!write_out(lines)) return;
    lines.clear();
    if (const std::uint64_t n_lost = n_lost_.exchange(0); n_lost > 0)
      lines = log_line(options_.format, unix_ms(), LogLevel::kWarn,
                       std::to_string(n_lost) + " lines of this log were lost: they were not read in time");
    if (!write_out(lines)) return;
    lines.clear();
  }
}

bool Log::write_out(std::string_view lines) {
  const SystemClock clock;
  while (!lines.empty()) {
    if (is_ending_ && !ends_by_) ends_by_ = clock.now() + milliseconds(limits::kLogCloseMs);
    if (ends_by_ && clock.now() >= *ends_by_) return false;
    pollfd watched{descriptor_, POLLOUT, 0};
    const int n_ready = poll(&watched, 1, static_cast<int>(kLook.ms()));
    if (n_ready > 0) {
      const ssize_t n =
          write(descriptor_, lines.data(), std::min(lines.size(), isatty(descriptor_) ? kTerminalBytes : kWriteBytes));
      if (n < 0 && errno != EINTR && errno != EAGAIN) return true;  // nobody is there any more: these are lost
      lines.remove_prefix(n > 0 ? static_cast<std::size_t>(n) : 0);
    }
  }
  return true;
}

}  // namespace fermata
