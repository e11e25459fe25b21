#include "chat/layout.h"

#include <gtest/gtest.h>

#include <random>

#include "base/text_width.h"

namespace fermata::chat {
namespace {

using Rows = std::vector<std::string>;

TEST(Layout, WrapsAndKnowsTheCursor) {
  struct Case {
    std::string text;
    std::size_t cursor;
    Rows rows;
    std::size_t row, column;
  };
  const std::vector<Case> cases = {
      {"", 0, {"> "}, 0, 2},
      {"abc", 3, {"> abc"}, 0, 5},
      {"abcdef", 0, {"> abcdef"}, 0, 2},
      {"abcdefgh", 8, {"> abcdefgh", "  "}, 1, 2},  // behind a full row
      {"abcdefgh", 7, {"> abcdefgh"}, 0, 9},
      {"abcdefghi", 8, {"> abcdefgh", "  i"}, 1, 2},
      {"abcdefghi", 9, {"> abcdefgh", "  i"}, 1, 3},
      {"ab\ncd", 2, {"> ab", "  cd"}, 0, 4},
      {"ab\ncd", 3, {"> ab", "  cd"}, 1, 2},
      {"ab\n", 3, {"> ab", "  "}, 1, 2},
      {"abcdefg日", 7, {"> abcdefg", "  日"}, 1, 2},  // a wide one does not fit into the last column
      {"abcdefg日", 10, {"> abcdefg", "  日"}, 1, 4},
      {"e\u0301x", 3, {"> e\u0301x"}, 0, 3},
      {"\x1b[31m\xff", 0, {"> \u241B[31m\uFFFD"}, 0, 2},
      {"\u009b1m\x7f", 0, {"> \uFFFD1m\u2421"}, 0, 2},
  };
  for (const Case& one : cases) {
    const Layout layout = lay_out("> ", one.text, one.cursor, 10);
    EXPECT_EQ(layout.rows, one.rows) << one.text;
    EXPECT_EQ(layout.cursor_row, one.row) << one.text;
    EXPECT_EQ(layout.cursor_column, one.column) << one.text << one.cursor;
  }
}

TEST(Layout, OfATallTextTheRowsAroundTheCursorAreShown) {
  const Layout whole = lay_out("> ", "1\n2\n3\n4\n5", 9, 10);
  EXPECT_EQ(clipped(whole, 2).rows, (Rows{"  4", "  5"}));
  EXPECT_EQ(clipped(whole, 2).cursor_row, 1u);
  const Layout above = lay_out("> ", "1\n2\n3\n4\n5", 0, 10);
  EXPECT_EQ(clipped(above, 2).rows, (Rows{"> 1", "  2"}));
  EXPECT_EQ(clipped(above, 2).cursor_row, 0u);
}

TEST(Layout, RandomTextsFitAndTheirCursorIsOnThem) {
  std::mt19937 chance(3);
  const Rows parts = {"a", " ", "日", "\u0301", "\n", "\t", "\U0001F600", "\x1b", "\xff"};
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (std::size_t n = chance() % 30; n > 0; --n) text += parts[chance() % parts.size()];
    const std::size_t n_columns = 2 + chance() % 12;
    const Layout layout = lay_out("> ", text, chance() % (text.size() + 1), n_columns);
    for (const std::string& row : layout.rows) ASSERT_LE(columns_of(row), n_columns) << text;
    ASSERT_LT(layout.cursor_row, layout.rows.size());
    ASSERT_LT(layout.cursor_column, n_columns);
  }
}

TEST(Harmless, LeavesNothingThatATerminalObeys) {
  EXPECT_EQ(harmless("a\x1b[31m\r\nb\tc\u009b1m\xff\x7f"), "a [31m \nb\tc 1m\uFFFD ");
}

TEST(ColumnAfter, IsWhereTheNextCharacterGoes) {
  EXPECT_EQ(column_after("", 4), 0u);
  EXPECT_EQ(column_after("abcd", 4), 4u);
  EXPECT_EQ(column_after("abcde", 4), 1u);
  EXPECT_EQ(column_after("abc日", 4), 2u);
}

}  // namespace
}  // namespace fermata::chat
