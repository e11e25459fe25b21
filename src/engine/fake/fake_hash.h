#pragma once

#include <cstdint>

// The arithmetic of the fake: good enough to make any difference visible, the same on every machine.
namespace fermata {

// splitmix64's finaliser over state and value. Order matters: mix(mix(s, a), b) != mix(mix(s, b), a).
constexpr std::uint64_t mix(std::uint64_t state, std::uint64_t value) {
  std::uint64_t z = state * 0x9e3779b97f4a7c15u + value + 0x632be59bd9b4e019u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// 0 <= unit < 1.
constexpr double unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

}  // namespace fermata
