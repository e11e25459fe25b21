#include "chat/layout.h"

#include <algorithm>
#include <utility>

#include "base/text_width.h"
#include "base/utf8.h"

namespace fermata::chat {
namespace {

constexpr std::size_t kTabColumns = 4;  // in what is being written

// What a character of an editor is shown as; of one column where it was a control character.
std::string shown(std::string_view character) {
  if (utf8_unit(character).kind != Utf8Unit::Kind::kCharacter || is_c1_control(character))
    return std::string(kReplacementCharacter);
  if (character == "\x7f") return "\u2421";
  if (is_ascii_control(character))
    return std::string("\xE2\x90") + static_cast<char>(0x80 + character[0]);  // U+2400 + c
  return std::string(character);
}

// Rows that grow by a character at a time.
class Rows {
 public:
  Rows(std::string_view prompt, std::size_t n_columns) : n_columns_(std::max<std::size_t>(n_columns, 2)) {
    const std::size_t n = columns_of(prompt);
    indent_ = 2 * n < n_columns_ ? n : 0;
    layout_.rows.emplace_back(indent_ == n ? prompt : "");
    column_ = indent_ == n ? n : 0;
  }

  void put_cursor() {
    is_cursor_put_ = true;
    layout_.cursor_row = layout_.rows.size() - 1;
    layout_.cursor_column = column_;
  }
  void begin_row() {
    layout_.rows.emplace_back(indent_, ' ');
    column_ = indent_;
  }
  void add(const std::string& character) {
    const std::size_t n = columns_of(character);
    const bool has_cursor_before =
        is_cursor_put_ && layout_.cursor_row == layout_.rows.size() - 1 && layout_.cursor_column == column_ && n > 0;
    if (column_ + n > n_columns_) {
      begin_row();
      if (has_cursor_before) put_cursor();  // it stands on the character that went to the next row
    }
    layout_.rows.back() += character;
    column_ += n;
  }
  Layout finish() && {
    if (layout_.cursor_column >= n_columns_) {  // behind a full row: there is no such column
      if (layout_.cursor_row + 1 == layout_.rows.size()) begin_row();
      ++layout_.cursor_row;
      layout_.cursor_column = indent_;
    }
    return std::move(layout_);
  }

 private:
  std::size_t n_columns_;
  std::size_t indent_ = 0;
  std::size_t column_ = 0;
  bool is_cursor_put_ = false;
  Layout layout_;
};

}  // namespace

Layout lay_out(std::string_view prompt, std::string_view text, std::size_t cursor, std::size_t n_columns) {
  Rows rows(prompt, n_columns);
  for (std::size_t at = 0; at < text.size();) {
    if (at == cursor) rows.put_cursor();
    const std::size_t n_bytes = text_unit(text.substr(at)).n_bytes;
    const std::string_view character = text.substr(at, n_bytes);
    if (character == "\n")
      rows.begin_row();
    else if (character == "\t")
      for (std::size_t i = 0; i < kTabColumns; ++i) rows.add(" ");
    else
      rows.add(shown(character));
    at += n_bytes;
  }
  if (cursor >= text.size()) rows.put_cursor();
  return std::move(rows).finish();
}

Layout clipped(Layout layout, std::size_t n_rows) {
  n_rows = std::max<std::size_t>(n_rows, 1);
  if (layout.rows.size() <= n_rows) return layout;
  const std::size_t last = std::max(layout.cursor_row + 1, n_rows);
  const auto begin = layout.rows.begin() + static_cast<std::ptrdiff_t>(last - n_rows);
  layout.rows = {begin, begin + static_cast<std::ptrdiff_t>(n_rows)};
  layout.cursor_row -= last - n_rows;
  return layout;
}

std::string harmless(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Unit unit = utf8_unit(text);
    const std::string_view character = text.substr(0, unit.n_bytes);
    if (unit.kind != Utf8Unit::Kind::kCharacter)
      out += kReplacementCharacter;
    else if ((is_ascii_control(character) && character != "\n" && character != "\t") || is_c1_control(character))
      out += ' ';
    else
      out += character;
    text.remove_prefix(unit.n_bytes);
  }
  return out;
}

std::size_t column_after(std::string_view line, std::size_t n_columns) {
  std::size_t column = 0;
  while (!line.empty()) {
    const TextUnit unit = text_unit(line);
    if (column + unit.n_columns > n_columns) column = 0;
    column += unit.n_columns;
    line.remove_prefix(unit.n_bytes);
  }
  return column;
}

}  // namespace fermata::chat
