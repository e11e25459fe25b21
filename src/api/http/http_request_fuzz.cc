// Any bytes as a stream of requests: nothing crashes or grows without bound, and what is read does not depend on how
// the bytes were cut. What is accepted keeps what RequestParser promises.
//   input = cut byte, bytes
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/http_text.h"
#include "api/http/request_parser.h"
#include "base/check.h"

namespace fermata::api {
namespace {

constexpr RequestParser::Limits kLimits{1024, 8, 512};

void check_promises(RequestParser& parser) {
  const HttpRequest& request = parser.request();
  FERMATA_CHECK(!request.method.empty());
  FERMATA_CHECK(request.path == "*" || request.path.starts_with('/'));
  FERMATA_CHECK(is_utf8(request.path) && request.path.find('\0') == std::string::npos);
  FERMATA_CHECK_LE(request.body.size(), kLimits.body_bytes_max);
  FERMATA_CHECK_LE(request.headers.size(), kLimits.headers_max);
  FERMATA_CHECK(!parser.http11() || !request.header("host").empty());
  for (const auto& [name, value] : request.headers) {
    FERMATA_CHECK(name == to_lower(name) && !name.empty());
    FERMATA_CHECK(value.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos);
  }
  for (const auto& [name, value] : request.query) FERMATA_CHECK(is_utf8(name) && is_utf8(value));
}

// One line per request, and how it ended.
std::vector<std::string> read_all(std::string_view bytes, std::size_t step) {
  std::vector<std::string> told;
  std::string pending;
  for (;;) {
    RequestParser parser(kLimits);
    for (;;) {
      const std::size_t n = pending.empty() ? 0 : parser.put(pending);
      pending.erase(0, n);
      if (parser.state() == RequestParser::State::kDone || parser.state() == RequestParser::State::kFailed) break;
      if (n > 0 && !pending.empty()) continue;
      if (bytes.empty()) return told;
      pending += bytes.substr(0, step);
      bytes.remove_prefix(std::min(step, bytes.size()));
      FERMATA_CHECK_LE(pending.size(), kLimits.header_bytes_max + step);
    }
    if (parser.state() == RequestParser::State::kFailed) {
      // Which limit is passed first may depend on the cuts, that one is passed may not.
      told.push_back("failed");
      return told;
    }
    check_promises(parser);
    const HttpRequest& request = parser.request();
    told.push_back(request.method + " " + request.path + " " + request.body + std::to_string(parser.keep_alive()));
    for (const auto& [name, value] : request.headers) told.push_back(name + ": " + value);
  }
}

}  // namespace
}  // namespace fermata::api

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const auto whole = fermata::api::read_all(bytes, 1 << 20);
  FERMATA_CHECK(whole == fermata::api::read_all(bytes, 1 + data[0]));
  FERMATA_CHECK(whole == fermata::api::read_all(bytes, 1));
  return 0;
}
