#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace fermata {

// A float as an integer that grows with it (-0 like +0), so that (value, index) pairs sort as one 64-bit number.
// Precondition: no NaN.
inline std::uint32_t ascending_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value + 0.0f);
  return bits >> 31 ? ~bits : bits | 0x80000000;
}

// Ascending. Some 10 ns a key for a whole vocabulary (Highway's vectorised quicksort).
void sort_keys(std::vector<std::uint64_t>& keys);

}  // namespace fermata
