#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace fermata {
namespace {

Result<std::unique_ptr<int>> half(int n) {
  if (n % 2) return Error{Code::kInvalidArgument, "odd", std::to_string(n), false};
  return std::make_unique<int>(n / 2);
}

TEST(Result, CarriesAValueThatCanOnlyBeMoved) {
  Result<std::unique_ptr<int>> result = half(8);
  ASSERT_TRUE(result);
  const std::unique_ptr<int> value = *std::move(result);
  EXPECT_EQ(*value, 4);
}

TEST(Result, CarriesTheErrorWithItsEvidence) {
  const Result<std::unique_ptr<int>> result = half(7);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, Code::kInvalidArgument);
  EXPECT_EQ(result.error().detail, "7");
}

TEST(ResultDeath, TakingTheValueOfAnErrorEndsTheProcess) {
  EXPECT_DEATH({ (void)half(7).value(); }, "odd");
}

TEST(Result, EveryCodeHasAName) {
  for (int i = 0; i <= static_cast<int>(Code::kIo); ++i) EXPECT_NE(to_string(static_cast<Code>(i)), "unknown");
}

TEST(CheckDeath, ShowsBothValues) {
  const int three = 3;
  EXPECT_DEATH(FERMATA_CHECK_EQ(three, 4), "three == 4 with 3 and 4");
}

}  // namespace
}  // namespace fermata
