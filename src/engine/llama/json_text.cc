#include "engine/llama/json_text.h"

#include "base/utf8.h"

namespace fermata {
namespace {

// The text as well-formed UTF-8, each of its ASCII characters through `ascii(out, c)`.
template <class Ascii>
std::string rewritten(std::string_view text, Ascii&& ascii) {
  std::string out;
  while (!text.empty()) {
    const Utf8Unit unit = utf8_unit(text);
    const bool is_character = unit.kind == Utf8Unit::Kind::kCharacter;
    if (!is_character)
      out += kReplacementCharacter;
    else if (unit.n_bytes == 1)
      ascii(out, text[0]);
    else
      out += text.substr(0, unit.n_bytes);
    text.remove_prefix(is_character ? unit.n_bytes : 1);
  }
  return out;
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

}  // namespace

std::string json_string(std::string_view text) {
  return '"' +
         rewritten(text,
                   [](std::string& out, char c) {
                     constexpr std::string_view kDigits = "0123456789abcdef";
                     if (c == '"' || c == '\\')
                       (out += '\\') += c;
                     else if (is_control(c))
                       ((out += "\\u00") += kDigits[c >> 4]) += kDigits[c & 15];
                     else
                       out += c;
                   }) +
         '"';
}

std::string printable(std::string_view text) {
  return rewritten(text, [](std::string& out, char c) { out += is_control(c) ? ' ' : c; });
}

}  // namespace fermata
