#include "engine/llama/checksum.h"

#include <sodium.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstring>
#include <new>
#include <vector>

#include "base/check.h"
#include "base/regular_file.h"

namespace fermata {
namespace {

constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87ull;
constexpr std::uint64_t kPrime2 = 0xC2B2AE3D27D4EB4Full;
constexpr std::uint64_t kPrime3 = 0x165667B19E3779F9ull;
constexpr std::uint64_t kPrime4 = 0x85EBCA77C2B2AE63ull;
constexpr std::uint64_t kPrime5 = 0x27D4EB2F165667C5ull;

template <class Word>
Word load(const std::byte* at) {
  Word word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

std::uint64_t round(std::uint64_t sum, std::uint64_t word) { return std::rotl(sum + word * kPrime2, 31) * kPrime1; }

}  // namespace

std::uint64_t xxh64(std::span<const std::byte> bytes, std::uint64_t seed) {
  const std::byte* at = bytes.data();
  const std::byte* const end = at + bytes.size();
  std::uint64_t hash = seed + kPrime5;
  if (bytes.size() >= 32) {
    std::array lanes = {seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1};
    for (; end - at >= 32; at += 32)
      for (std::size_t lane = 0; lane < 4; ++lane) lanes[lane] = round(lanes[lane], load<std::uint64_t>(at + 8 * lane));
    hash = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) + std::rotl(lanes[3], 18);
    for (const std::uint64_t lane : lanes) hash = (hash ^ round(0, lane)) * kPrime1 + kPrime4;
  }
  hash += bytes.size();
  for (; end - at >= 8; at += 8) hash = std::rotl(hash ^ round(0, load<std::uint64_t>(at)), 27) * kPrime1 + kPrime4;
  if (end - at >= 4) {
    hash = std::rotl(hash ^ load<std::uint32_t>(at) * kPrime1, 23) * kPrime2 + kPrime3;
    at += 4;
  }
  for (; at < end; ++at) hash = std::rotl(hash ^ std::to_integer<std::uint64_t>(*at) * kPrime5, 11) * kPrime1;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

Result<std::string> sha256_of_file(const std::string& path) {
  const Result<RegularFile> file = open_regular_file(path);
  if (!file) return file.error();
  crypto_hash_sha256_state state;
  crypto_hash_sha256_init(&state);
  std::vector<unsigned char> buffer(1 << 20);
  for (std::uint64_t at = 0; at < file->n_bytes;) {
    const ssize_t n = pread(file->descriptor.number(), buffer.data(), buffer.size(), static_cast<off_t>(at));
    if (n <= 0) return Error{Code::kIo, path + " cannot be read to its end", {}, true};
    crypto_hash_sha256_update(&state, buffer.data(), static_cast<std::size_t>(n));
    at += static_cast<std::uint64_t>(n);
  }
  std::array<unsigned char, crypto_hash_sha256_BYTES> digest{};
  crypto_hash_sha256_final(&state, digest.data());
  std::array<char, digest.size() * 2 + 1> text{};
  sodium_bin2hex(text.data(), text.size(), digest.data(), digest.size());
  return std::string(text.data());
}

namespace {
constexpr std::size_t kDigestBytes = 32;
crypto_generichash_state* as_state(void* state) { return static_cast<crypto_generichash_state*>(state); }
}  // namespace

Blake2b::Blake2b()
    : state_(::operator new (sizeof(crypto_generichash_state), std::align_val_t{alignof(crypto_generichash_state)})) {
  FERMATA_CHECK(sodium_init() >= 0);
  crypto_generichash_init(as_state(state_), nullptr, 0, kDigestBytes);
}

Blake2b::~Blake2b() { ::operator delete (state_, std::align_val_t{alignof(crypto_generichash_state)}); }

void Blake2b::add(std::string_view piece) {
  const std::uint64_t n = piece.size();
  add_raw(std::as_bytes(std::span(&n, 1)));
  add_raw(std::as_bytes(std::span(piece)));
}

void Blake2b::add_raw(std::span<const std::byte> bytes) {
  crypto_generichash_update(as_state(state_), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

std::string Blake2b::hex() {
  std::array<unsigned char, kDigestBytes> digest;
  crypto_generichash_final(as_state(state_), digest.data(), digest.size());
  std::array<char, kDigestBytes * 2 + 1> text;
  sodium_bin2hex(text.data(), text.size(), digest.data(), digest.size());
  return text.data();
}

}  // namespace fermata
