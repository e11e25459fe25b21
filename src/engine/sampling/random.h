#pragma once

#include <array>
#include <cstdint>

#include "base/ids.h"

// Chance without state: a random number is a pure function of (key, position, stream, attempt), so a generation that is
// paused, forked or folded again draws the same ones.
namespace fermata {

// Philox4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

// Who draws. The values are part of what a stored generation means: never renumber.
enum class Stream : std::uint32_t {
  kDist = 0,
  kXtc = 1,
  kMirostat = 2,
  kAdaptive = 3,
  kBranch = 4,
};

// Which draw at a position: the second is made when the grammar refused the first choice. It must be independent of
// the first, or the tokens that stand early in the order would be preferred.
enum class Attempt : std::uint32_t { kFirst = 0, kWithGrammar = 1 };

struct DrawPlace {
  SamplingKey key{};
  Position position = 0;
  Attempt attempt = Attempt::kFirst;
};

double uniform_double(const DrawPlace& place, Stream stream);  // [0, 1), 53 bits
float uniform_float(const DrawPlace& place, Stream stream);    // [0, 1), 24 bits

// Keys and seeds are the same 64 bits: the key of a branch may be written into SamplingParams::seed.
constexpr SamplingKey key_from_seed(std::uint64_t seed) { return SamplingKey{seed}; }

// Branch 0 keeps its parent's key, so that choice 0 of n = 2 is the answer to n = 1.
SamplingKey key_for_branch(SamplingKey parent, std::uint32_t index);

}  // namespace fermata
