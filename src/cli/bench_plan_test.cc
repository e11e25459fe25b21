#include "cli/bench_plan.h"

#include <gtest/gtest.h>

namespace fermata::cli {
namespace {

TEST(BenchPlan, MeasuresEveryNumberOfStreamsAtEveryDepth) {
  EXPECT_EQ(decode_cells({}), (std::vector<SpeedCell>{{1, 100}, {4, 100}, {8, 100}, {1, 900}, {4, 900}, {8, 900}}));
  EXPECT_EQ(prefill_cells({}), (std::vector<SpeedCell>{{1, 30}, {1, 500}, {1, 3000}}));
}

TEST(BenchPlan, LeavesOutLongPrompts) {
  BenchPlan plan;
  plan.n_prompt_max = 500;
  EXPECT_EQ(decode_cells(plan).size(), 3u);
  EXPECT_EQ(prefill_cells(plan), (std::vector<SpeedCell>{{1, 30}, {1, 500}}));
  plan.n_prompt_max = 0;
  EXPECT_TRUE(decode_cells(plan).empty());
}

TEST(BenchPlan, SamplesFewerSecondPausesAndNeverTooFew) {
  EXPECT_EQ(BenchPlan{}.n_second_pauses(), 200);
  BenchPlan plan;
  plan.n_samples = 1;
  EXPECT_EQ(plan.n_second_pauses(), 20);
  EXPECT_EQ(BenchPlan::quick().n_rounds, 1);
  EXPECT_LT(BenchPlan::quick().n_samples, BenchPlan{}.n_samples);
}

TEST(BenchPlan, FreezesOnlyWhatFitsWithItsTokens) {
  EXPECT_EQ(freeze_lengths(102'400, 1 << 20).back(), 100'000);
  EXPECT_EQ(freeze_lengths(100'400, 1 << 20).back(), 100'000);
  EXPECT_EQ(freeze_lengths(100'399, 1 << 20).back(), 30'000);
  EXPECT_EQ(freeze_lengths(1 << 20, 2048), (std::vector<std::int32_t>{100, 1000}));
  EXPECT_TRUE(freeze_lengths(499, 1 << 20).empty());
}

}  // namespace
}  // namespace fermata::cli
