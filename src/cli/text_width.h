#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fermata::cli {

// Columns that UTF-8 text takes on a terminal: 2 for wide characters, 0 for combining ones, as the C library's tables
// have them. What cannot be shown (control characters, ill-formed bytes) counts as one.
std::size_t columns_of(std::string_view text);

// The longest beginning, or end, that takes at most so many columns; whole characters.
std::string_view beginning_of(std::string_view text, std::size_t n_columns);
std::string_view end_of(std::string_view text, std::size_t n_columns);

}  // namespace fermata::cli
