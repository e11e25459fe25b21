#include "chat/screen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/text_width.h"
#include "base/utf8.h"

namespace fermata::chat {
namespace {

// A terminal that knows what Screen uses: rows without end, so that what scrolls away is still there.
class Terminal {
 public:
  explicit Terminal(std::size_t n_columns) : n_columns_(n_columns) {}

  void take(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::size_t n = bytes[0] == '\x1b' ? take_escape(bytes) : utf8_unit(bytes).n_bytes;
      if (bytes[0] != '\x1b') put(std::string(bytes.substr(0, n)));
      bytes.remove_prefix(n);
    }
  }
  // In this order.
  void take_all(std::initializer_list<std::string> parts) {
    for (const std::string& part : parts) take(part);
  }
  // Without blanks at the ends of rows and empty rows at the end; "|" where the cursor is.
  std::string shown(bool with_cursor = true) {
    std::string out;
    const std::size_t n_rows = with_cursor ? std::max(rows_.size(), row_ + 1) : rows_.size();
    rows_.resize(std::max(rows_.size(), n_rows));
    for (std::size_t r = 0; r < n_rows; ++r) {
      std::string line;
      for (std::size_t c = 0; c < rows_[r].size() || (with_cursor && r == row_ && c <= column_); ++c) {
        if (with_cursor && r == row_ && c == column_) line += '|';
        if (c < rows_[r].size()) line += rows_[r][c];
      }
      while (line.ends_with(' ')) line.pop_back();
      out += line + "\n";
    }
    while (out.ends_with('\n')) out.pop_back();
    return out + "\n";
  }
  // As terminals do that wrap anew: rows that are too wide are cut, the cursor stays on its character.
  void narrow(std::size_t n_columns) {
    std::vector<std::vector<std::string>> rows;
    std::size_t row = 0;
    std::size_t column = column_;
    for (std::size_t r = 0; r < std::max(rows_.size(), row_ + 1); ++r) {
      std::vector<std::string> cells = r < rows_.size() ? rows_[r] : std::vector<std::string>();
      while (!cells.empty() && cells.back() == " ") cells.pop_back();
      std::size_t at = 0;
      do {
        const std::size_t n = std::min(n_columns, cells.size() - at);
        if (r == row_ && column_ >= at && column_ < at + n_columns) row = rows.size(), column = column_ - at;
        rows.emplace_back(cells.begin() + static_cast<std::ptrdiff_t>(at),
                          cells.begin() + static_cast<std::ptrdiff_t>(at + n));
        at += n;
      } while (at < cells.size());
    }
    rows_ = rows;
    row_ = row;
    column_ = column;
    n_columns_ = n_columns;
  }

 private:
  std::size_t take_escape(std::string_view bytes) {
    std::size_t end = 2;
    while (bytes[end] < '@') ++end;
    const std::size_t n = end == 2 ? 1 : std::stoul(std::string(bytes.substr(2, end - 2)));
    if (bytes[end] == 'A') {
      EXPECT_GE(row_, n);
      row_ -= std::min(row_, n);
    }
    if (bytes[end] == 'C') column_ = std::min(column_ + n, n_columns_ - 1);
    if (bytes[end] == 'J') {
      rows_.resize(std::min(rows_.size(), row_ + 1));
      if (row_ < rows_.size()) rows_[row_].resize(std::min(rows_[row_].size(), column_));
    }
    return end + 1;
  }
  void put(const std::string& character) {
    if (character == "\r") {
      column_ = 0;
    } else if (character == "\n") {
      column_ = 0;
      ++row_;
    } else {
      const std::size_t n = columns_of(character);
      if (n == 0) {  // a mark, on the letter before it
        rows_[row_][column_ - 1] += character;
        return;
      }
      if (column_ + n > n_columns_) column_ = 0, ++row_;
      rows_.resize(std::max(rows_.size(), row_ + 1));
      rows_[row_].resize(std::max(rows_[row_].size(), column_ + n), " ");
      rows_[row_][column_] = character;
      if (n == 2) rows_[row_][column_ + 1] = "";
      column_ += n;
    }
  }

  std::size_t n_columns_;
  std::vector<std::vector<std::string>> rows_;
  std::size_t row_ = 0;
  std::size_t column_ = 0;
};

constexpr TerminalSize kSize{10, 10};

Layout block(const std::string& text) { return lay_out("> ", text, text.size(), kSize.n_columns); }

TEST(Screen, ABlockBelowGrowingTextComesAndGoes) {
  Screen screen(kSize, false);
  Terminal terminal(kSize.n_columns);
  terminal.take_all({screen.write("Once"), screen.show(block("ab"))});
  EXPECT_EQ(terminal.shown(), "Once\n> ab|\n");
  terminal.take(screen.show(block("abcdefghi")));
  EXPECT_EQ(terminal.shown(), "Once\n> abcdefgh\n  i|\n");
  terminal.take(screen.write(" upon a"));
  EXPECT_EQ(terminal.shown(), "Once upon\na|\n") << "the text goes on where it was";
  terminal.take_all({screen.end_line(), screen.show(block(""))});
  EXPECT_EQ(terminal.shown(), "Once upon\na\n> |\n");
  terminal.take(screen.hide());
  EXPECT_EQ(terminal.shown(), "Once upon\na\n|\n");
}

TEST(Screen, AFullRowIsFollowedByTheNext) {
  for (const std::string next : {"k", "\nk"}) {
    Screen screen(kSize, false);
    Terminal terminal(kSize.n_columns);
    terminal.take_all({screen.write("abcdefghij"), screen.show(block("x")), screen.hide(), screen.write(next)});
    EXPECT_EQ(terminal.shown(), "abcdefghij\nk|\n") << "an end of line that is there already is not written again";
  }
}

TEST(Screen, NothingButLooksIsWrittenWithColoursOff) {
  Screen plain(kSize, false);
  EXPECT_EQ(plain.write("a\x1b[1m", Look::kBold), "a [1m");
  Screen colourful(kSize, true);
  EXPECT_EQ(colourful.write("a\x1b", Look::kBold), "\x1b[1ma \x1b[0m");
}

TEST(Screen, ATabIsBlanks) {
  Screen screen(kSize, false);
  EXPECT_EQ(screen.write("ab\tc"), "ab      c");
}

TEST(Screen, ASmallerTerminalLosesNoText) {
  Screen screen(kSize, false);
  Terminal terminal(kSize.n_columns);
  terminal.take_all({screen.write("above\nOnce upo"), screen.show(block("abcdefg"))});
  terminal.narrow(6);
  terminal.take(screen.resize({10, 6}));
  EXPECT_EQ(terminal.shown(), "above\nOnce u\npo|\n");
  terminal.take_all({screen.show(lay_out("> ", "abcdefg", 7, 6)), screen.write("n a time")});
  EXPECT_EQ(terminal.shown(), "above\nOnce u\npon a\ntime|\n");
}

// Text and blocks by chance: when all blocks are gone, what stands there is what the text alone would have given.
TEST(Screen, RandomBlocksLeaveNoTrace) {
  std::mt19937 chance(11);
  const std::vector<std::string> parts = {"a", "bc ", "日", "\n", "defghijklm", "e\u0301", "\t", "\n\n"};
  for (int round = 0; round < 2000; ++round) {
    Screen screen(kSize, false), alone(kSize, false);
    Terminal terminal(kSize.n_columns), reference(kSize.n_columns);
    for (std::size_t n = chance() % 20; n > 0; --n) {
      const std::string& text = parts[chance() % parts.size()];
      if (chance() % 3 == 0) terminal.take(screen.show(block(parts[chance() % parts.size()])));
      if (chance() % 5 == 0) terminal.take(screen.hide());
      terminal.take(screen.write(text));
      reference.take(alone.write(text));
    }
    terminal.take(screen.hide());
    ASSERT_EQ(terminal.shown(false), reference.shown(false)) << round;
  }
}

}  // namespace
}  // namespace fermata::chat
