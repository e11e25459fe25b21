#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fermata {

// XXH64 (Yann Collet's, from its published specification): finds damage, not malice. About 10 GB/s.
std::uint64_t xxh64(std::span<const std::byte> bytes, std::uint64_t seed);

// SHA-256 of a whole regular file, 64 hex digits: the name under which others know a model file. kIo if it cannot be
// read.
Result<std::string> sha256_of_file(const std::string& path);

// BLAKE2b with 256 bits, fed in pieces: where two different things must never look the same.
class Blake2b {
 public:
  Blake2b();
  ~Blake2b();
  Blake2b(const Blake2b&) = delete;
  Blake2b& operator=(const Blake2b&) = delete;

  // Adds the length, then the bytes: pieces cannot flow into each other.
  void add(std::string_view piece);
  void add_raw(std::span<const std::byte> bytes);
  std::string hex();  // 64 digits; ends it

 private:
  void* state_;
};

}  // namespace fermata
