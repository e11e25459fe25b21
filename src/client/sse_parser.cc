#include "client/sse_parser.h"

#include <utility>

#include "base/limits.h"

namespace fermata::client {

Result<void> SseParser::add(std::string_view bytes, std::vector<SseEvent>& events) {
  for (const char c : bytes) {
    if (c == '\n' && std::exchange(after_cr_, false)) continue;
    after_cr_ = c == '\r';
    if (c == '\n' || c == '\r') {
      end_line(events);
      continue;
    }
    if (line_.size() + event_.data.size() >= limits::kSseEventBytesMax)
      return Error{Code::kTooLarge, "the server sends an event that is too long",
                   "limit " + std::to_string(limits::kSseEventBytesMax) + " bytes", false};
    line_ += c;
  }
  return {};
}

void SseParser::end_line(std::vector<SseEvent>& events) {
  std::string_view line = line_;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (std::exchange(is_first_line_, false) && line.starts_with(kByteOrderMark))
    line.remove_prefix(kByteOrderMark.size());
  if (line.empty()) {
    if (std::exchange(has_data_, false)) events.push_back(std::move(event_));
    event_ = {};
  } else if (const auto colon = line.find(':'); colon != 0) {  // else a comment
    std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
    if (value.starts_with(' ')) value.remove_prefix(1);
    take_field(line.substr(0, colon), value);
  }
  line_.clear();
}

void SseParser::take_field(std::string_view name, std::string_view value) {
  if (name == "event") event_.type = value;
  if (name != "data") return;
  if (std::exchange(has_data_, true)) event_.data += '\n';
  event_.data += value;
}

}  // namespace fermata::client
