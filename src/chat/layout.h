#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::chat {

struct TerminalSize {
  std::size_t n_rows = 24;
  std::size_t n_columns = 80;
  bool operator==(const TerminalSize&) const = default;
};

// Rows as they stand on a terminal, none wider than it, and the cursor among them.
struct Layout {
  std::vector<std::string> rows;
  std::size_t cursor_row = 0;
  std::size_t cursor_column = 0;
};

// `text` behind `prompt`, wrapped; what follows the first row is indented by as much as the prompt takes. Characters
// that would do something to a terminal are shown as signs. `cursor` is a place in `text`, in bytes. Pure.
Layout lay_out(std::string_view prompt, std::string_view text, std::size_t cursor, std::size_t n_columns);

// Those rows around the cursor that fit.
Layout clipped(Layout layout, std::size_t n_rows);

// Text for a terminal: control characters but "\n" and "\t" become blanks, what is no UTF-8 becomes U+FFFD.
std::string harmless(std::string_view text);

// The column in which the cursor stands behind a line that began in column 0: up to n_columns, where the next character
// goes to the next row.
std::size_t column_after(std::string_view line, std::size_t n_columns);

}  // namespace fermata::chat
