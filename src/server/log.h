#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/http/answered.h"
#include "server/line_writer.h"

namespace fermata {

enum class LogFormat { kText, kJson };
enum class LogLevel { kDebug, kInfo, kWarn, kError, kOff };

struct LogOptions {
  LogFormat format = LogFormat::kText;
  LogLevel level = LogLevel::kInfo;  // the least that is said
};

// A line for each request and for what an operator should know, never with text of prompts or answers, written by a
// LineWriter; lines that were lost are told of. One thread says, and lives shorter than this.
class Log {
 public:
  Log(LogOptions options, int descriptor);

  const LogOptions& options() const { return options_; }
  void say(LogLevel level, std::string_view message);
  // At info; what was refused at warn, what failed at error, a probe that was answered as it should be at debug.
  void answered(const api::AnsweredRequest& request);

  // Lines that nobody will read.
  std::uint64_t n_lost() const { return writer_ ? writer_->n_lost() : 0; }

 private:
  bool is_said(LogLevel level) const { return writer_ && level >= options_.level && level != LogLevel::kOff; }

  const LogOptions options_;
  std::optional<LineWriter> writer_;
};

// One line each, with its end. `time`: milliseconds since 1970.
std::string log_line(LogFormat format, std::int64_t time, LogLevel level, std::string_view message);
std::string log_line(LogFormat format, std::int64_t time, LogLevel level, const api::AnsweredRequest& request);
bool is_probe(const api::AnsweredRequest& request);  // of health
LogLevel level_of(const api::AnsweredRequest& request);

}  // namespace fermata
