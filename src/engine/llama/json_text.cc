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

// Precondition: ASCII, or U+0080 to U+00BF: its last byte is its number then.
void write_escaped(std::string& out, std::string_view character) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto c = static_cast<unsigned char>(character.back());
  ((out += "\\u00") += kDigits[c >> 4]) += kDigits[c & 15];
}

void write_without_c1(std::string& out, std::string_view character) {
  if (is_c1_control(character))
    write_escaped(out, character);
  else
    out += character;
}

void write_json(std::string& out, std::string_view character) {
  const char c = character[0];
  if (c == '"' || c == '\\')
    (out += '\\') += c;
  else if (is_ascii_control(character))
    write_escaped(out, character);
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

std::string json_for_terminal(std::string_view json) { return rewritten(json, write_without_c1); }

std::string printable(std::string_view text) { return rewritten(text, write_printable); }

std::string printable_lines(std::string_view text) { return rewritten(text, write_printable_lines); }

}  // namespace fermata
