#include "api/names.h"

#include <sodium.h>

#include <array>
#include <span>

namespace fermata::api {
namespace {

constexpr std::size_t kIdBytes = 16;

std::string in_hex(std::span<const unsigned char> bytes) {
  std::string text(2 * bytes.size() + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), bytes.data(), bytes.size());
  text.pop_back();
  return text;
}

}  // namespace

std::string new_id(std::string_view prefix) {
  std::array<unsigned char, kIdBytes> bytes{};
  randombytes_buf(bytes.data(), bytes.size());
  return std::string(prefix) + in_hex(bytes);
}

std::uint64_t new_seed() {
  std::uint64_t seed = 0;
  randombytes_buf(&seed, sizeof seed);
  return seed >> 11;  // exact in the doubles of JavaScript, so that a client can send it again
}

std::string digest(std::string_view text) {
  std::array<unsigned char, kIdBytes> hash{};
  crypto_generichash(hash.data(), hash.size(), reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                     nullptr, 0);
  return in_hex(hash);
}

}  // namespace fermata::api
