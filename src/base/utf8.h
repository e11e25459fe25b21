#pragma once

#include <cstddef>
#include <string_view>

namespace fermata {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

// The unit at the beginning of some bytes: a character, or a maximal ill-formed subpart (Unicode 3.9, table 3-7, and
// the WHATWG decoder): what stands for one U+FFFD.
struct Utf8Unit {
  enum class Kind {
    kCharacter,
    kIllFormed,
    kUnfinished,  // all the bytes there are; more bytes decide whether it is a character
  };
  Kind kind = Kind::kUnfinished;
  std::size_t n_bytes = 0;
};

// Precondition: not empty.
Utf8Unit utf8_unit(std::string_view bytes);

// Length (0..3) of the character that begins at the end of these bytes and is not finished there.
std::size_t utf8_unfinished_suffix(std::string_view bytes);

bool is_utf8(std::string_view bytes);

// Whether a character is one that a terminal obeys: of ASCII, or U+0080 to U+009F, of which U+009B is what ESC [ is.
bool is_ascii_control(std::string_view character);
bool is_c1_control(std::string_view character);
// Whether it sets the direction in which what follows is shown: U+202A to U+202E, U+2066 to U+2069.
bool is_bidi_control(std::string_view character);

}  // namespace fermata
