#include "cli/table.h"

#include <gtest/gtest.h>

#include "cli/text_width.h"

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

TEST(TextWidth, WideCombiningAndBrokenOnes) {
  EXPECT_EQ(columns_of("abc"), 3u);
  EXPECT_EQ(columns_of("日本"), 4u);
  EXPECT_EQ(columns_of("e\u0301"), 1u);
  EXPECT_EQ(columns_of("\U0001F600"), 2u);
  EXPECT_EQ(columns_of("\xFF\xE6"), 2u);
}

TEST(TextWidth, CutsBetweenCharacters) {
  EXPECT_EQ(beginning_of("日本語", 5), "日本");
  EXPECT_EQ(beginning_of("日本語", 6), "日本語");
  EXPECT_EQ(end_of("日本語", 5), "本語");
  EXPECT_EQ(end_of("abc", 0), "");
  EXPECT_EQ(beginning_of("ae\u0301b", 2), "ae\u0301");
}

}  // namespace
}  // namespace fermata::cli
