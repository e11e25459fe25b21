#include "engine/llama/json_text.h"

#include <cstddef>

namespace fermata {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Bytes of the well-formed character that the text begins with; 0 if there is none. Table 3-7 of the Unicode standard.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  std::size_t n = 0;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) n = 2;
  if (lead >= 0xE0 && lead <= 0xEF) n = 3;
  if (lead >= 0xF0 && lead <= 0xF4) n = 4;
  if (lead == 0xE0) low = 0xA0;   // no overlong forms
  if (lead == 0xED) high = 0x9F;  // no surrogates
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;  // up to U+10FFFF
  if (n == 0 || text.size() < n || byte(1) < low || byte(1) > high) return 0;
  for (std::size_t i = 2; i < n; ++i)
    if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
  return n;
}

// The text as well-formed UTF-8, each of its ASCII characters through `ascii(out, c)`.
template <class Ascii>
std::string rewritten(std::string_view text, Ascii&& ascii) {
  std::string out;
  while (!text.empty()) {
    const std::size_t n = character_bytes(text);
    if (n == 0)
      out += kReplacement;
    else if (n == 1)
      ascii(out, text[0]);
    else
      out += text.substr(0, n);
    text.remove_prefix(n == 0 ? 1 : n);
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
