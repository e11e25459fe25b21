#include "engine/sampling/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace fermata {
namespace {

using Words = std::array<std::uint32_t, 4>;

// The vectors of Random123 1.14, tests/kat_vectors, philox4x32 10.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// What a seed means may never change: stored generations are folded with it.
TEST(Uniform, GoldenValues) {
  const DrawPlace place{key_from_seed(42), 7, Attempt::kFirst};
  const auto words = philox4x32({7, 0, 0, 0}, {42, 0});
  EXPECT_EQ(uniform_double(place, Stream::kDist),
            static_cast<double>((std::uint64_t{words[0]} << 32 | words[1]) >> 11) / 9007199254740992.0);
  EXPECT_EQ(uniform_float(place, Stream::kXtc),
            static_cast<float>(philox4x32({7, 1, 0, 0}, {42, 0})[2] >> 8) / 16777216.0f);
  const DrawPlace second{key_from_seed(42), 7, Attempt::kWithGrammar};
  EXPECT_NE(uniform_double(place, Stream::kDist), uniform_double(second, Stream::kDist));
}

TEST(Uniform, EveryCoordinateCounts) {
  std::set<double> seen;
  for (std::uint64_t key : {0ull, 1ull, 1ull << 32, ~0ull}) {
    for (Position position : {0, 1, 2, 1 << 20}) {
      for (auto attempt : {Attempt::kFirst, Attempt::kWithGrammar}) {
        for (auto stream : {Stream::kDist, Stream::kXtc, Stream::kMirostat, Stream::kAdaptive}) {
          seen.insert(uniform_double({SamplingKey{key}, position, attempt}, stream));
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), 4u * 4 * 2 * 4);
}

// Mean and variance of 1/2 and 1/12, a flat histogram, and no memory from one position to the next.
TEST(Uniform, LooksUniformOverPositions) {
  constexpr int kN = 200'000;
  double sum = 0, squares = 0, products = 0, before = 0.5;
  std::vector<int> histogram(64);
  for (int i = 0; i < kN; ++i) {
    const double u = uniform_double({key_from_seed(3), i, Attempt::kFirst}, Stream::kDist);
    ASSERT_TRUE(u >= 0 && u < 1);
    ++histogram[static_cast<std::size_t>(u * 64)];
    sum += u, squares += u * u, products += (u - 0.5) * (before - 0.5);
    before = u;
  }
  EXPECT_NEAR(sum / kN, 0.5, 0.003);
  EXPECT_NEAR(squares / kN - 0.25, 1.0 / 12, 0.003);
  EXPECT_NEAR(products / kN, 0, 0.001);
  double chi = 0;
  for (int count : histogram) chi += std::pow(count - kN / 64.0, 2) / (kN / 64.0);
  EXPECT_LT(chi, 120);  // 63 degrees of freedom: 120 is beyond p = 1e-5
}

TEST(Branch, ZeroIsTheParentAndOthersDiffer) {
  const SamplingKey parent = key_from_seed(99);
  EXPECT_EQ(key_for_branch(parent, 0), parent);
  std::set<std::uint64_t> keys;
  for (std::uint32_t i = 0; i < 1000; ++i) keys.insert(raw(key_for_branch(parent, i)));
  for (std::uint32_t i = 1; i < 1000; ++i) keys.insert(raw(key_for_branch(key_for_branch(parent, 1), i)));
  EXPECT_EQ(keys.size(), 1999u);
}

}  // namespace
}  // namespace fermata
