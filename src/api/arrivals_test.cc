#include "api/arrivals.h"

#include <gtest/gtest.h>

#include "base/limits.h"

namespace fermata::api {
namespace {

TEST(ArrivalsTest, AreCountedByTheirNames) {
  Arrivals arrivals;
  arrivals.begin("t", "a");
  arrivals.begin("t", "a");
  arrivals.begin("u", "a");
  arrivals.end("t", "a");
  EXPECT_TRUE(arrivals.is_coming("t", "a")) << "another one with its name";
  arrivals.end("t", "a");
  EXPECT_FALSE(arrivals.is_coming("t", "a"));
  EXPECT_TRUE(arrivals.is_coming("u", "a"));
  EXPECT_EQ(arrivals.n(), 1u);
}

TEST(ArrivalsTest, ACancelCountsOnceAndForAMinute) {
  Arrivals arrivals;
  ASSERT_TRUE(arrivals.cancel("t", "a", Instant{}));
  EXPECT_FALSE(arrivals.take_cancel("u", "a"));
  EXPECT_TRUE(arrivals.take_cancel("t", "a"));
  EXPECT_FALSE(arrivals.take_cancel("t", "a"));
  ASSERT_TRUE(arrivals.cancel("t", "old", Instant{}));
  ASSERT_TRUE(arrivals.cancel("t", "new", Instant{} + milliseconds(1)));
  arrivals.sweep(Instant{} + milliseconds(limits::kTombstoneMs));
  EXPECT_FALSE(arrivals.take_cancel("t", "old"));
  EXPECT_TRUE(arrivals.take_cancel("t", "new"));
}

TEST(ArrivalsTest, ATenantHasSoManyCancelsAndAllTogetherToo) {
  Arrivals arrivals;
  const std::size_t n_tenants = limits::kTombstonesMax / limits::kTombstonesPerTenantMax;
  for (std::size_t t = 0; t < n_tenants; ++t) {
    for (std::size_t i = 0; i < limits::kTombstonesPerTenantMax; ++i)
      ASSERT_TRUE(arrivals.cancel(std::to_string(t), std::to_string(i), Instant{}));
    EXPECT_EQ(arrivals.cancel(std::to_string(t), "more", Instant{}).error().code, Code::kBusy);
  }
  EXPECT_EQ(arrivals.cancel("another", "one", Instant{}).error().code, Code::kBusy);
  EXPECT_EQ(arrivals.cancel("t", "", Instant{}).error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace fermata::api
