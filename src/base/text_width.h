#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fermata {

// Columns that UTF-8 text takes on a terminal: 2 for wide characters, 0 for combining ones, as the C library's tables
// have them. What cannot be shown (control characters, ill-formed bytes) counts as one.
std::size_t columns_of(std::string_view text);

struct TextUnit {
  std::size_t n_bytes;
  std::size_t n_columns;
};
// The character, or the ill-formed byte, that `text` begins with. Precondition: not empty.
TextUnit text_unit(std::string_view text);

// Bytes of what a reader takes for the first letter: a character with the combining ones behind it, and those that a
// zero-width joiner ties to it. Precondition: not empty.
std::size_t letter_bytes(std::string_view text);

// The longest beginning, or end, that takes at most so many columns; whole characters.
std::string_view beginning_of(std::string_view text, std::size_t n_columns);
std::string_view end_of(std::string_view text, std::size_t n_columns);

}  // namespace fermata
