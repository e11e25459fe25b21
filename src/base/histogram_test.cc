#include "base/histogram.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace fermata {
namespace {

using Counts = std::vector<std::uint64_t>;

TEST(Histogram, ABoundBelongsToTheBucketBelowIt) {
  Histogram histogram({1, 2, 4});
  for (const double value : {0.0, 1.0, 1.5, 2.0, 3.0, 4.0, 4.5, 100.0}) histogram.observe(value);
  EXPECT_EQ(histogram.snapshot().counts, (Counts{2, 2, 2, 2}));
  EXPECT_DOUBLE_EQ(histogram.snapshot().sum, 116);
  EXPECT_EQ(histogram.snapshot().n(), 8u);
}

TEST(Histogram, ThreadsLoseNothing) {
  Histogram histogram({0.5});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 10'000; ++n) histogram.observe(n % 2);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(histogram.snapshot().counts, (Counts{20'000, 20'000}));
  EXPECT_DOUBLE_EQ(histogram.snapshot().sum, 20'000);
}

}  // namespace
}  // namespace fermata
