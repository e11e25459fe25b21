#include "chat/screen.h"

#include <algorithm>
#include <utility>

#include "base/text_width.h"

namespace fermata::chat {
namespace {

constexpr std::size_t kTabColumns = 8;

std::string moved(std::size_t n, char direction) { return n == 0 ? "" : "\x1b[" + std::to_string(n) + direction; }

const char* code_of(Look look) {
  switch (look) {
    case Look::kPlain: return "";
    case Look::kBold: return "\x1b[1m";
    case Look::kDim: return "\x1b[2m";
    case Look::kRed: return "\x1b[31m";
  }
  return "";
}

}  // namespace

std::string Screen::in_look(std::string_view text, Look look) const {
  if (!has_colours_ || look == Look::kPlain || text.empty()) return std::string(text);
  return code_of(look) + std::string(text) + "\x1b[0m";
}

// Tabs as blanks: where the cursor stands behind one at the edge is each terminal's own affair.
std::string Screen::expanded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      line_.clear();
      if (!std::exchange(is_row_begun_, false)) out += '\n';
      continue;
    }
    is_row_begun_ = false;
    const std::size_t n =
        c == '\t' ? kTabColumns - column_after(line_, size_.n_columns) % size_.n_columns % kTabColumns : 1;
    out.append(n, c == '\t' ? ' ' : c);
    line_.append(n, c == '\t' ? ' ' : c);
  }
  return out;
}

std::string Screen::write(std::string_view text, Look look) {
  if (text.empty()) return {};
  std::string out = hide();
  return out + in_look(expanded(harmless(text)), look);
}

std::string Screen::end_line() { return line_.empty() && !is_row_begun_ ? hide() : write("\n"); }

std::string Screen::show(Layout block, Look look) {
  std::string out = hide();
  if (!line_.empty()) {
    is_block_below_ = column_after(line_, size_.n_columns) < size_.n_columns;
    is_row_begun_ = !is_block_below_;  // the row was full: where the text goes on is where the block begins
    if (is_row_begun_) line_.clear();
    out += '\n';
  }
  block_ = clipped(std::move(block), size_.n_rows - std::min<std::size_t>(size_.n_rows, 1));
  for (std::size_t i = 0; i < block_.rows.size(); ++i) (out += i == 0 ? "" : "\n") += in_look(block_.rows[i], look);
  out += "\r" + moved(block_.rows.size() - 1 - block_.cursor_row, 'A') + moved(block_.cursor_column, 'C');
  return out;
}

// Rows that were too wide for `n_columns` take several now.
std::size_t Screen::rows_above_cursor(std::size_t n_columns) const {
  std::size_t n = block_.cursor_column / n_columns;
  for (std::size_t i = 0; i < block_.cursor_row; ++i)
    n += std::max<std::size_t>((columns_of(block_.rows[i]) + n_columns - 1) / n_columns, 1);
  return n;
}

std::string Screen::hide() {
  if (block_.rows.empty()) return {};
  std::string out = "\r" + moved(rows_above_cursor(size_.n_columns), 'A') + "\x1b[J";
  block_ = {};
  if (!std::exchange(is_block_below_, false)) return out;
  const std::size_t column = column_after(line_, size_.n_columns);
  out += "\x1b[A";
  if (column < size_.n_columns) return out + moved(column, 'C');
  // The line fills its row since the terminal has another width: the text goes on below it.
  is_row_begun_ = true;
  line_.clear();
  return out + '\n';
}

std::string Screen::resize(TerminalSize size) {
  size_ = {std::max<std::size_t>(size.n_rows, 2), std::max<std::size_t>(size.n_columns, 2)};
  return hide();
}

void Screen::forget() {
  block_ = {};
  line_.clear();
  is_row_begun_ = false;
  is_block_below_ = false;
}

}  // namespace fermata::chat
