#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fermata::client {

struct SseEvent {
  std::string type;  // empty: "message"
  std::string data;
};

// Server-sent events out of bytes that come in any pieces: HTML Living Standard, section 9.2.6. Ids and retry times are
// read over. Pure.
class SseParser {
 public:
  // Appends the events that are whole with these bytes. kTooLarge: an event of more than limits::kSseEventBytesMax.
  Result<void> add(std::string_view bytes, std::vector<SseEvent>& events);

 private:
  void end_line(std::vector<SseEvent>& events);
  void take_field(std::string_view name, std::string_view value);

  std::string line_;
  SseEvent event_;
  bool has_data_ = false;
  bool after_cr_ = false;  // a line feed now belongs to the end of line before it
  bool is_first_line_ = true;
};

}  // namespace fermata::client
