#pragma once

#include <string>
#include <string_view>

namespace fermata {

// What a model file says of itself may be any bytes. Both replace what is no UTF-8 by U+FFFD, a byte at a time.

// A JSON string, quotes included.
std::string json_string(std::string_view text);

// JSON as it is, but for U+0080 to U+009F, which some terminals obey: they are escaped. They stand inside strings
// alone.
std::string json_for_terminal(std::string_view json);

// For a line on a terminal: control characters (escape codes among them), and those that turn the direction of what
// follows, become spaces.
std::string printable(std::string_view text);
// For a text on a terminal: control characters that neither end nor indent a line become spaces.
std::string printable_lines(std::string_view text);

}  // namespace fermata
