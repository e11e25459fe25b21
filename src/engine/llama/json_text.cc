#include "engine/llama/json_text.h"

#include "base/utf8.h"

namespace fermata {
namespace {

// The text as well-formed UTF-8, each of its characters through `write(out, character)`.
template <class Write>
std::string rewritten(std::string_view text, Write&& write) {
  std::string out;
  while (!text.empty()) {
    const Utf8Unit unit = utf8_unit(text);
    const bool is_character = unit.kind == Utf8Unit::Kind::kCharacter;
    if (is_character)
      write(out, text.substr(0, unit.n_bytes));
    else
      out += kReplacementCharacter;
    text.remove_prefix(is_character ? unit.n_bytes : 1);
  }
  return out;
}

void write_json(std::string& out, std::string_view character) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const char c = character[0];
  if (c == '"' || c == '\\')
    (out += '\\') += c;
  else if (is_ascii_control(character))
    ((out += "\\u00") += kDigits[c >> 4]) += kDigits[c & 15];
  else
    out += character;
}

void write_printable(std::string& out, std::string_view character) {
  if (is_ascii_control(character) || is_c1_control(character) || is_bidi_control(character))
    out += ' ';
  else
    out += character;
}

// A text may well be written from right to left.
void write_printable_lines(std::string& out, std::string_view character) {
  if (character == "\n" || character == "\t" || is_bidi_control(character))
    out += character;
  else
    write_printable(out, character);
}

}  // namespace

std::string json_string(std::string_view text) { return '"' + rewritten(text, write_json) + '"'; }

std::string printable(std::string_view text) { return rewritten(text, write_printable); }

std::string printable_lines(std::string_view text) { return rewritten(text, write_printable_lines); }

}  // namespace fermata
