#include "engine/llama/chat/work_budget.h"

#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace fermata {
namespace {

constexpr WorkBudget::Bounds kAmple = {1000, 1 << 20, 1 << 20};

std::size_t n_taken_until_refused() {
  std::size_t n = 0;
  std::vector<std::unique_ptr<int>> taken;
  taken.reserve(100'000);
  try {
    for (; n < 100'000; ++n) taken.push_back(std::make_unique<int>());
  } catch (const std::bad_alloc&) {
  }
  return n;
}

TEST(WorkBudget, EndsWorkWithoutEnd) {
  WorkBudget budget({1000, 64 << 20, 64 << 20});
  EXPECT_EQ(n_taken_until_refused(), 999u) << "and the vector itself";
  EXPECT_TRUE(budget.exceeded());
  // Whoever goes on does not get far.
  EXPECT_LT(n_taken_until_refused(), 20'000u);
}

TEST(WorkBudget, BoundsWhatIsHeldAtOnceAndWhatIsCopied) {
  {
    WorkBudget budget({1000, 1 << 20, 1 << 30});
    for (int i = 0; i < 100; ++i) std::string(1 << 19, 'x');  // given back each time
    EXPECT_FALSE(budget.exceeded());
    EXPECT_THROW(std::string(2 << 20, 'x'), std::bad_alloc);
    EXPECT_TRUE(budget.exceeded());
  }
  WorkBudget budget({1000, 1 << 20, 4 << 20});
  const auto copy = [] {
    for (int i = 0; i < 10; ++i) std::string(1 << 19, 'x');
  };
  EXPECT_THROW(copy(), std::bad_alloc);
}

int depth_until_refused(int depth) {
  volatile char frame[1000] = {};
  frame[depth % 1000] = 1;
  try {
    const auto taken = std::make_unique<int>(depth);
    return depth < 1'000'000 ? depth_until_refused(depth + 1) + frame[(depth + 1) % 1000] : depth;
  } catch (const std::bad_alloc&) {
    return depth;
  }
}

TEST(WorkBudget, EndsARecursionBeforeTheStackDoes) {
  for (int thread = 0; thread < 2; ++thread) {
    int depth = 0;
    std::thread([&] {
      const WorkBudget budget(kAmple);
      depth = depth_until_refused(0);
      EXPECT_TRUE(budget.exceeded());
    }).join();
    EXPECT_GT(depth, 100);
    EXPECT_LT(depth, 100'000);
  }
}

TEST(WorkBudget, IsOfItsThreadAndTimeAlone) {
  const auto before = std::make_unique<std::string>(1 << 20, 'x');
  std::size_t n_elsewhere = 0;
  {
    WorkBudget budget(kAmple);
    std::thread([&] { n_elsewhere = n_taken_until_refused(); }).join();
    EXPECT_FALSE(budget.exceeded());
  }
  EXPECT_EQ(n_elsewhere, 100'000u);
  EXPECT_EQ(n_taken_until_refused(), 100'000u);
}

}  // namespace
}  // namespace fermata
