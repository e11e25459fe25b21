#include "server/log.h"

#include <chrono>
#include <cstring>
#include <utility>

namespace fermata {
namespace {

std::int64_t unix_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

std::string tell_lost(LogFormat format, std::uint64_t n_lost, int error) {
  const std::string why = error == 0 ? "not read in time" : std::string("not written: ") + std::strerror(error);
  return log_line(format, unix_ms(), LogLevel::kWarn,
                  std::to_string(n_lost) + (n_lost == 1 ? " line" : " lines") + " of this log " +
                      (n_lost == 1 ? "was" : "were") + " lost, " + why);
}

}  // namespace

Log::Log(LogOptions options, int descriptor) : options_(options) {
  if (options_.level == LogLevel::kOff) return;
  const auto tell = [format = options.format](std::uint64_t n_lost, int error) {
    return tell_lost(format, n_lost, error);
  };
  writer_.emplace(descriptor, tell);
}

void Log::say(LogLevel level, std::string_view message) {
  if (is_said(level)) writer_->put(log_line(options_.format, unix_ms(), level, message));
}

void Log::answered(const api::AnsweredRequest& request) {
  const LogLevel level = level_of(request);
  if (is_said(level)) writer_->put(log_line(options_.format, unix_ms(), level, request));
}

}  // namespace fermata
