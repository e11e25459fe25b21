#include "base/utf8.h"

#include <algorithm>

#include "base/check.h"

namespace fermata {
namespace {

// What may follow a lead byte: n more bytes, the first of them in [low, high], the others in [80, BF].
struct Continuation {
  std::size_t n_more = 0;  // 0: not a lead byte
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
};

Continuation continuation_of(unsigned char lead) {
  if (lead >= 0xC2 && lead <= 0xDF) return {.n_more = 1};
  if (lead == 0xE0) return {.n_more = 2, .low = 0xA0};   // no overlong forms
  if (lead == 0xED) return {.n_more = 2, .high = 0x9F};  // no surrogates
  if (lead >= 0xE1 && lead <= 0xEF) return {.n_more = 2};
  if (lead == 0xF0) return {.n_more = 3, .low = 0x90};
  if (lead >= 0xF1 && lead <= 0xF3) return {.n_more = 3};
  if (lead == 0xF4) return {.n_more = 3, .high = 0x8F};  // up to U+10FFFF
  return {};
}

}  // namespace

Utf8Unit utf8_unit(std::string_view bytes) {
  FERMATA_CHECK(!bytes.empty());
  const auto lead = static_cast<unsigned char>(bytes[0]);
  if (lead < 0x80) return {Utf8Unit::Kind::kCharacter, 1};
  Continuation expected = continuation_of(lead);
  if (expected.n_more == 0) return {Utf8Unit::Kind::kIllFormed, 1};
  for (std::size_t i = 1; i <= expected.n_more; ++i) {
    if (i == bytes.size()) return {Utf8Unit::Kind::kUnfinished, i};
    const auto byte = static_cast<unsigned char>(bytes[i]);
    if (byte < expected.low || byte > expected.high) return {Utf8Unit::Kind::kIllFormed, i};
    expected.low = 0x80;
    expected.high = 0xBF;
  }
  return {Utf8Unit::Kind::kCharacter, expected.n_more + 1};
}

std::size_t utf8_unfinished_suffix(std::string_view bytes) {
  // Continuation bytes cannot lead, so at most one suffix is an unfinished unit.
  for (std::size_t n = 1; n <= std::min<std::size_t>(3, bytes.size()); ++n) {
    const Utf8Unit unit = utf8_unit(bytes.substr(bytes.size() - n));
    if (unit.kind == Utf8Unit::Kind::kUnfinished) return n;
  }
  return 0;
}

bool is_ascii_control(std::string_view character) {
  return character.size() == 1 && (static_cast<unsigned char>(character[0]) < 0x20 || character[0] == 0x7F);
}

bool is_c1_control(std::string_view character) {
  return character.size() == 2 && character[0] == '\xC2' && static_cast<unsigned char>(character[1]) < 0xA0;
}

bool is_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const Utf8Unit unit = utf8_unit(bytes);
    if (unit.kind != Utf8Unit::Kind::kCharacter) return false;
    bytes.remove_prefix(unit.n_bytes);
  }
  return true;
}

bool is_bidi_control(std::string_view character) {
  if (character.size() != 3 || character[0] != '\xE2') return false;
  return (character[1] == '\x80' && character[2] >= '\xAA' && character[2] <= '\xAE') ||
         (character[1] == '\x81' && character[2] >= '\xA6' && character[2] <= '\xA9');
}

}  // namespace fermata
