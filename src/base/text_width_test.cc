#include "base/text_width.h"

#include <gtest/gtest.h>

namespace fermata {
namespace {

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

TEST(TextWidth, ALetterHasItsMarks) {
  EXPECT_EQ(letter_bytes("e\u0301x"), 3u);
  EXPECT_EQ(letter_bytes("\U0001F469\u200D\U0001F680x"), 11u);
  EXPECT_EQ(letter_bytes("ab"), 1u);
  EXPECT_EQ(letter_bytes("\u0301"), 2u);
}

}  // namespace
}  // namespace fermata
