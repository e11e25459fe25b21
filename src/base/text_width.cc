#include "base/text_width.h"

#include <locale.h>
#include <wchar.h>

#include <algorithm>

#include "base/utf8.h"

namespace fermata {
namespace {

// wcwidth() asks the locale of its thread, and the program's own knows ASCII alone.
class UnicodeHere {
 public:
  UnicodeHere() : before_(uselocale(unicode())) {}
  ~UnicodeHere() { uselocale(before_); }
  UnicodeHere(const UnicodeHere&) = delete;
  UnicodeHere& operator=(const UnicodeHere&) = delete;

 private:
  static locale_t unicode() {
    static const locale_t made = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    return made;
  }
  locale_t before_;
};

wchar_t code_point(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<wchar_t>(static_cast<unsigned char>(character[i])); };
  if (character.size() == 1) return byte(0);
  wchar_t code = byte(0) & (0x7F >> character.size());
  for (std::size_t i = 1; i < character.size(); ++i) code = code << 6 | (byte(i) & 0x3F);
  return code;
}

TextUnit unit_of(std::string_view text) {
  const Utf8Unit unit = utf8_unit(text);
  if (unit.kind != Utf8Unit::Kind::kCharacter) return {1, 1};
  const int width = wcwidth(code_point(text.substr(0, unit.n_bytes)));
  return {unit.n_bytes, static_cast<std::size_t>(width < 0 ? 1 : width)};
}

}  // namespace

TextUnit text_unit(std::string_view text) {
  const UnicodeHere unicode;
  return unit_of(text);
}

std::size_t letter_bytes(std::string_view text) {
  constexpr std::string_view kJoiner = "\u200D";
  const UnicodeHere unicode;
  std::size_t n_bytes = unit_of(text).n_bytes;
  while (n_bytes < text.size()) {
    const TextUnit next = unit_of(text.substr(n_bytes));
    if (next.n_columns != 0 && !text.substr(0, n_bytes).ends_with(kJoiner)) break;
    n_bytes += next.n_bytes;
  }
  return n_bytes;
}

std::size_t columns_of(std::string_view text) {
  const UnicodeHere unicode;
  std::size_t n = 0;
  while (!text.empty()) {
    const TextUnit unit = unit_of(text);
    n += unit.n_columns;
    text.remove_prefix(unit.n_bytes);
  }
  return n;
}

std::string_view beginning_of(std::string_view text, std::size_t n_columns) {
  const UnicodeHere unicode;
  std::size_t n_bytes = 0;
  for (std::size_t n = 0; n_bytes < text.size();) {
    const TextUnit unit = unit_of(text.substr(n_bytes));
    n += unit.n_columns;
    if (n > n_columns) break;
    n_bytes += unit.n_bytes;
  }
  return text.substr(0, n_bytes);
}

std::string_view end_of(std::string_view text, std::size_t n_columns) {
  const std::size_t n_all = columns_of(text);
  const UnicodeHere unicode;
  for (std::size_t n = n_all; n > n_columns;) {
    const TextUnit unit = unit_of(text);
    n -= unit.n_columns;
    text.remove_prefix(unit.n_bytes);
  }
  return text;
}

}  // namespace fermata
