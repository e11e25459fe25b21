#include "api/http/request_id.h"

#include <sodium.h>

#include <algorithm>
#include <array>

#include "base/limits.h"

namespace fermata::api {

bool is_request_id(std::string_view text) {
  static constexpr std::string_view kMarks = "-_.:/+=@";
  return !text.empty() && text.size() <= limits::kRequestIdBytesMax &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  kMarks.find(c) != std::string_view::npos;
         });
}

std::string new_request_id() {
  std::array<unsigned char, 16> bytes;
  randombytes_buf(bytes.data(), bytes.size());
  std::array<char, 2 * bytes.size() + 1> hex;
  return std::string("req_") + sodium_bin2hex(hex.data(), hex.size(), bytes.data(), bytes.size());
}

}  // namespace fermata::api
