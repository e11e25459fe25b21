#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/http/http_request.h"

namespace fermata::api {

enum class Framing {
  kLength,      // content-length, the body follows
  kChunked,     // HTTP/1.1 streams
  kUntilClose,  // HTTP/1.0 streams: the close ends the body
};

struct HeadOptions {
  Framing framing = Framing::kLength;
  bool keep_alive = true;
  bool http11 = true;
  std::string_view date;  // "Sun, 29 Nov 2026 22:37:00 GMT"
};

// Status line and headers up to the empty line. Names or values that frame the message are ours and not taken from the
// response; control characters in a value are percent-encoded, so that no value can begin a line of its own.
std::string response_head(const HttpResponse& response, const HeadOptions& options);

// 204 and 304 have neither a body nor a length.
bool has_body(int status);

std::string http_date(std::int64_t unix_seconds);

}  // namespace fermata::api
