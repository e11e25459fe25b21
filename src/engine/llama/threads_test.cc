#include "engine/llama/threads.h"

#include <gtest/gtest.h>

namespace fermata {
namespace {

TEST(ChooseThreads, TakesOneForEachCore) {
  EXPECT_EQ(choose_threads({.n_allowed = 16, .n_cores = 8}, 0).n_threads, 8);
  EXPECT_EQ(choose_threads({.n_allowed = 2, .n_cores = 2}, 0).n_threads, 2);
  EXPECT_EQ(choose_threads({.n_allowed = 1, .n_cores = 1}, 0).n_threads, 1);
}

TEST(ChooseThreads, StaysWithinTheQuota) {
  EXPECT_EQ(choose_threads({.n_allowed = 16, .n_cores = 8, .quota = 2.5}, 0).n_threads, 2);
  EXPECT_EQ(choose_threads({.n_allowed = 16, .n_cores = 8, .quota = 0.5}, 0).n_threads, 1);
  EXPECT_EQ(choose_threads({.n_allowed = 16, .n_cores = 8, .quota = 64}, 0).n_threads, 8);
  EXPECT_NE(choose_threads({.n_allowed = 16, .n_cores = 8, .quota = 2}, 0).why.find("quota"), std::string::npos);
}

TEST(ChooseThreads, DoesAsAskedWithinReason) {
  EXPECT_EQ(choose_threads({.n_allowed = 2, .n_cores = 2}, 7).n_threads, 7);
  EXPECT_EQ(choose_threads({.n_allowed = 2, .n_cores = 2}, 1 << 30).n_threads, 512);
  EXPECT_NE(choose_threads({.n_allowed = 2, .n_cores = 2}, 7).why.find("as asked"), std::string::npos);
}

TEST(ReadCpuBudget, FindsThisMachinePlausible) {
  const CpuBudget budget = read_cpu_budget();
  EXPECT_GE(budget.n_allowed, 1);
  EXPECT_GE(budget.n_cores, 1);
  EXPECT_LE(budget.n_cores, budget.n_allowed);
  EXPECT_GE(budget.quota, 0);
}

}  // namespace
}  // namespace fermata
