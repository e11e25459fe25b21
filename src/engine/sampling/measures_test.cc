#include "engine/sampling/measures.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <string>

#include "engine/sampling/row_scan.h"

namespace fermata {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<float> random_row(std::size_t n, unsigned seed, float spread = 3) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> row(n);
  for (float& logit : row) logit = normal(random);
  return row;
}

struct Reference {
  double log_sum, entropy, margin;
};

Reference reference(const std::vector<float>& row) {
  const double max = static_cast<double>(*std::max_element(row.begin(), row.end()));
  double sum = 0, second = -1e300;
  bool skipped = false;
  for (float logit : row) sum += std::exp(static_cast<double>(logit) - max);
  double entropy = 0;
  for (float logit : row) {
    const double p = std::exp(static_cast<double>(logit) - max) / sum;
    if (p > 0) entropy -= p * std::log(p);
    if (static_cast<double>(logit) == max && !skipped) {
      skipped = true;
    } else {
      second = std::max(second, static_cast<double>(logit));
    }
  }
  return {std::log(sum), entropy, max - second};
}

RowMeasures measure(const std::vector<float>& row) {
  RowScan scan;
  scan_row(row, scan);
  return measure_row(row, scan);
}

TEST(Measures, AgreeWithDoubles) {
  for (std::size_t n : {2u, 3u, 15u, 16u, 17u, 63u, 64u, 65u, 1000u, 32000u, 49152u, 50257u}) {
    for (float spread : {0.01f, 1.0f, 5.0f, 30.0f}) {
      const auto row = random_row(n, static_cast<unsigned>(n), spread);
      const RowMeasures got = measure(row);
      const Reference want = reference(row);
      EXPECT_NEAR(got.log_sum, want.log_sum, 2e-6 * (1 + want.log_sum)) << n << " " << spread;
      EXPECT_NEAR(got.entropy, want.entropy, 2e-6 * (1 + want.entropy)) << n << " " << spread;
      EXPECT_NEAR(got.margin, want.margin, 1e-6 * (1 + want.margin)) << n << " " << spread;
    }
  }
}

TEST(Measures, KnowForbiddenTokensAndTies) {
  auto row = random_row(1000, 5);
  for (std::size_t i = 0; i < 500; ++i) row[i] = -kInf;
  const std::vector<float> rest(row.begin() + 500, row.end());
  EXPECT_NEAR(measure(row).entropy, reference(rest).entropy, 1e-5);
  EXPECT_EQ(measure({0, 1, 1}).margin, 0);
  EXPECT_EQ(measure({-kInf, 1, -kInf}).margin, kInf);
  EXPECT_NEAR(measure({-kInf, 1, -kInf}).entropy, 0, 1e-6);
}

TEST(RowScan, FindsMaximumAndNaNWhereverTheyStand) {
  for (std::size_t n : {1u, 63u, 64u, 65u, 200u, 1024u}) {
    for (std::size_t at = 0; at < n; ++at) {
      std::vector<float> row(n, -1);
      RowScan scan;
      row[at] = 3;
      scan_row(row, scan);
      ASSERT_FALSE(scan.has_nan);
      ASSERT_EQ(scan.max, 3);
      ASSERT_EQ(argmax(row, scan), TokenId{static_cast<std::int32_t>(at)});
      row[at] = std::numeric_limits<float>::quiet_NaN();
      scan_row(row, scan);
      ASSERT_TRUE(scan.has_nan) << n << " " << at;
    }
  }
}

TEST(RowScan, ArgmaxTakesTheSmallestIdAmongEquals) {
  std::vector<float> row(500, 0);
  row[400] = row[77] = row[99] = 5;
  RowScan scan;
  scan_row(row, scan);
  EXPECT_EQ(argmax(row, scan), TokenId{77});
}

// The promise of row_scan.h: the same bits on every machine, so a journal written on one can be checked on another.
// A row that every machine makes alike: no logarithm of a library's.
std::vector<float> same_row_everywhere(std::size_t n) {
  std::mt19937 random(11);
  std::vector<float> row(n);
  for (float& logit : row) logit = static_cast<float>(random() >> 8) / 1048576.0F - 8.0F;
  return row;
}

// Written down, because no machine has all instruction sets: NEON's are those of x86 (tools/cross-arm64).
TEST(RowScan, SumsDoNotDependOnTheVectorWidth) {
  struct Case {
    std::size_t n;
    double weight, weighted;
  };
  std::set<std::string> names;
  for (const Case& want :
       {Case{7, 0x1.414a66d6a5e2p+0, -0x1.7373d447ee8p-2}, Case{100, 0x1.8036fcc9184p+2, -0x1.29a65beda6p+2},
        Case{49152, 0x1.096a8b1c9p+11, -0x1.0d0733e04p+11},
        Case{49155, 0x1.096a8b7d13cd8p+11, -0x1.0d0737a5164c8p+11}}) {
    const auto row = same_row_everywhere(want.n);
    for (const auto target : hwy::SupportedAndGeneratedTargets()) {
      hwy::SetSupportedTargetsForTest(target);
      names.insert(row_scan_target());
      const ExpSums sums = exp_sums(row, *std::max_element(row.begin(), row.end()), 1 / 0.7f);
      EXPECT_EQ(sums.weight, want.weight) << want.n << std::hexfloat << " " << sums.weight;
      EXPECT_EQ(sums.weighted, want.weighted) << want.n << std::hexfloat << " " << sums.weighted;
    }
    hwy::SetSupportedTargetsForTest(0);
  }
#if HWY_ARCH_X86
  EXPECT_GE(names.size(), 2u) << "this machine can compare nothing";
#endif
}

TEST(LogSoftmaxTop, IsSortedAndRight) {
  auto row = random_row(5000, 3);
  row[4000] = row[17] = 20;  // a tie: the smaller id first
  const auto top = log_softmax_top(row, 20);
  ASSERT_EQ(top.size(), 20u);
  EXPECT_EQ(top[0].token, TokenId{17});
  EXPECT_EQ(top[1].token, TokenId{4000});
  const Reference want = reference(row);
  for (std::size_t i = 0; i < top.size(); ++i) {
    if (i > 0) {
      EXPECT_LE(top[i].logprob, top[i - 1].logprob);
    }
    EXPECT_NEAR(top[i].logprob,
                static_cast<double>(row[static_cast<std::size_t>(raw(top[i].token))]) - 20 - want.log_sum, 1e-5);
  }
  std::vector<float> sorted = row;
  std::sort(sorted.rbegin(), sorted.rend());
  for (std::size_t i = 0; i < top.size(); ++i) EXPECT_EQ(row[static_cast<std::size_t>(raw(top[i].token))], sorted[i]);
  EXPECT_TRUE(log_softmax_top(std::vector<float>(10, -kInf), 5).empty());
  EXPECT_EQ(log_softmax_top(std::vector<float>{1, 2}, 5).size(), 2u);
}

}  // namespace
}  // namespace fermata
