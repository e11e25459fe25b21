#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "api/http/answered.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/ring.h"

namespace fermata {

enum class LogFormat { kText, kJson };
enum class LogLevel { kDebug, kInfo, kWarn, kError, kOff };

struct LogOptions {
  LogFormat format = LogFormat::kText;
  LogLevel level = LogLevel::kInfo;  // the least that is said
};

// A line for each request and for what an operator should know, never with text of prompts or answers. Lines are
// written by a thread of its own, whole and in order: a reader that does not read costs nobody any time, but lines,
// which are counted and told of. One thread says, and lives shorter than this.
class Log {
 public:
  Log(LogOptions options, int descriptor);
  ~Log();  // what was said is written, unless that takes kLogCloseMs
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  const LogOptions& options() const { return options_; }
  void say(LogLevel level, std::string_view message);
  // At info; what was refused at warn, what failed at error, a probe that found us well at debug.
  void answered(const api::AnsweredRequest& request);

 private:
  void put(std::string line);
  void write_all();
  // False: nobody reads, and the end cannot wait.
  bool write_out(std::string_view lines);

  const LogOptions options_;
  const int descriptor_;
  Ring<std::string> lines_{limits::kLogLinesMax};
  std::atomic<std::uint64_t> n_lost_{0};
  std::atomic<bool> is_ending_{false};
  std::optional<Instant> ends_by_;  // of the writer: what is not written by then is lost
  std::thread writer_;
};

// One line each, with its end. `time`: milliseconds since 1970.
std::string log_line(LogFormat format, std::int64_t time, LogLevel level, std::string_view message);
std::string log_line(LogFormat format, std::int64_t time, LogLevel level, const api::AnsweredRequest& request);
LogLevel level_of(const api::AnsweredRequest& request);

}  // namespace fermata
