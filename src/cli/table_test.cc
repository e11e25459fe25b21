#include "cli/table.h"

#include <gtest/gtest.h>

namespace fermata::cli {
namespace {

TEST(Table, ColumnsStandUnderEachOtherWhateverTheLettersAre) {
  EXPECT_EQ(table({{"A", "B"}, {"日本", "x"}, {"e\u0301", "y"}}), "A     B\n日本  x\ne\u0301     y\n");
}

TEST(Table, AgeIsInItsLargestUnit) {
  EXPECT_EQ(age(-3), "0s");
  EXPECT_EQ(age(59.9), "59s");
  EXPECT_EQ(age(61), "1m");
  EXPECT_EQ(age(7300), "2h");
  EXPECT_EQ(age(200'000), "2d");
}

}  // namespace
}  // namespace fermata::cli
