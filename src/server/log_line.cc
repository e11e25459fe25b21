#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cstdio>
#include <ctime>

#include "server/log.h"

namespace fermata {
namespace {

std::string_view name_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return "debug";
    case LogLevel::kInfo: return "info";
    case LogLevel::kWarn: return "warn";
    case LogLevel::kError: return "error";
    case LogLevel::kOff: break;
  }
  return "off";
}

std::string_view name_of(api::CutBy by) {
  switch (by) {
    case api::CutBy::kClient: return "client";
    case api::CutBy::kKey: return "key";
    case api::CutBy::kStop: return "stop";
    case api::CutBy::kError: return "error";
    case api::CutBy::kNobody: break;
  }
  return "nobody";
}

// "2026-11-30T05:12:01.250Z"
std::string utc(std::int64_t time) {
  const auto seconds = static_cast<std::time_t>(time / 1000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[40];
  const std::size_t n = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + n, sizeof text - n, ".%03dZ", static_cast<int>(time % 1000));
  return text;
}

std::string head_of_text(std::int64_t time, LogLevel level) {
  std::string head = utc(time) + " " + std::string(name_of(level));
  head.resize(head.size() + 6 - name_of(level).size(), ' ');
  return head;
}

boost::json::object head_of_json(std::int64_t time, LogLevel level, std::string_view event) {
  return {{"time", utc(time)}, {"level", name_of(level)}, {"event", event}};
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

std::string in_ms(Duration took, int n_decimals) {
  char text[40];
  std::snprintf(text, sizeof text, "%.*f", n_decimals, took.ms());
  return text;
}

}  // namespace

std::string log_line(LogFormat format, std::int64_t time, LogLevel level, std::string_view message) {
  std::string plain(message);
  for (char& c : plain)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';  // one line, no escape codes
  if (format == LogFormat::kText) return head_of_text(time, level) + plain + "\n";
  boost::json::object line = head_of_json(time, level, "message");
  line["message"] = plain;
  return boost::json::serialize(line) + "\n";
}

std::string log_line(LogFormat format, std::int64_t time, LogLevel level, const api::AnsweredRequest& request) {
  if (format == LogFormat::kText) {
    std::string line = head_of_text(time, level);
    line += or_dash(request.method) + " " + or_dash(request.path) + " " + std::to_string(request.status) + " " +
            std::to_string(request.n_bytes) + " B " + in_ms(request.took, 1) + " ms key=" + or_dash(request.key) +
            " id=" + request.id;
    if (!request.noted.empty()) line += " generation=" + request.noted;
    if (!request.end.empty()) line += " end=" + request.end;
    if (request.cut_by != api::CutBy::kNobody) line += " cut=" + std::string(name_of(request.cut_by));
    return line + "\n";
  }
  boost::json::object line = head_of_json(time, level, "request");
  line["request_id"] = request.id;
  line["method"] = request.method;
  line["path"] = request.path;
  line["status"] = request.status;
  line["bytes"] = request.n_bytes;
  line["key"] = request.key.empty() ? boost::json::value() : boost::json::value(request.key);
  line["tenant"] = request.tenant;
  if (!request.noted.empty()) line["generation"] = request.noted;
  if (!request.end.empty()) line["end"] = request.end;
  line["whole"] = request.is_whole;
  if (request.cut_by != api::CutBy::kNobody) line["cut"] = name_of(request.cut_by);
  std::string text = boost::json::serialize(line);
  // Behind the others: serialize() writes 0.134 as 1.34E-1, which people read wrong and awk not at all.
  text.insert(text.size() - 1, ",\"ms\":" + in_ms(request.took, 3));
  return text + "\n";
}

bool is_probe(const api::AnsweredRequest& request) { return request.path == "/health" || request.path == "/v1/health"; }

LogLevel level_of(const api::AnsweredRequest& request) {
  if (request.cut_by == api::CutBy::kError) return LogLevel::kError;
  // A stream has said 200 long before, and a whole answer has the status of an error also for what its client wanted.
  const api::Ending by_status = request.status >= 500   ? api::Ending::kFailed
                                : request.status >= 400 ? api::Ending::kRefused
                                                        : api::Ending::kWell;
  const api::Ending ending = request.ending.value_or(by_status);
  if (ending == api::Ending::kFailed) return LogLevel::kError;
  if (ending == api::Ending::kRefused) return LogLevel::kWarn;
  return is_probe(request) ? LogLevel::kDebug : LogLevel::kInfo;
}

}  // namespace fermata
