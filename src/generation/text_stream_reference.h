#pragma once

// For tests: what a TextStream must say, computed from the whole text at once and in the most obvious way.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::reference {

inline std::string encode(std::uint32_t code_point) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | ((code_point >> shift) & 0x3F)); };
  if (code_point < 0x80) return {static_cast<char>(code_point)};
  if (code_point < 0x800) return {static_cast<char>(0xC0 | (code_point >> 6)), tail(0)};
  if (code_point < 0x10000) return {static_cast<char>(0xE0 | (code_point >> 12)), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | (code_point >> 18)), tail(12), tail(6), tail(0)};
}

// All beginnings of characters that are not whole characters. Characters with equal bits above the last six share them.
inline const std::set<std::string, std::less<>>& beginnings() {
  static const auto all = [] {
    std::set<std::string, std::less<>> made;
    for (std::uint32_t code_point = 0x80; code_point <= 0x10FFFF; code_point += 64) {
      if (code_point >= 0xD800 && code_point <= 0xDFFF) continue;
      const std::string character = encode(code_point);
      for (std::size_t n = 1; n < character.size(); ++n) made.insert(character.substr(0, n));
    }
    return made;
  }();
  return all;
}

inline bool is_character(std::string_view bytes) {
  const auto lead = static_cast<unsigned char>(bytes[0]);
  if (lead < 0x80) return bytes.size() == 1;
  const std::size_t n = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  return bytes.size() == n && beginnings().contains(bytes.substr(0, n - 1)) &&
         (static_cast<unsigned char>(bytes.back()) & 0xC0) == 0x80;
}

struct Unit {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool is_character = false;
};

// Characters and maximal ill-formed parts, without an unfinished character at the end.
inline std::vector<Unit> units(std::string_view bytes) {
  std::vector<Unit> units;
  for (std::size_t begin = 0; begin < bytes.size();) {
    std::size_t n = 1;
    while (begin + n <= bytes.size() && beginnings().contains(bytes.substr(begin, n))) ++n;
    if (begin + n > bytes.size()) break;
    const bool whole = is_character(bytes.substr(begin, n));
    if (!whole && n > 1) --n;  // the last byte is what does not fit
    units.push_back({begin, begin + n, whole});
    begin += n;
  }
  return units;
}

struct Expected {
  std::string text;
  std::size_t n_bytes_out = 0;
  bool stopped = false;
  std::string stop_string;
  std::size_t n_held_for_stop = 0;
};

// `raw`: the bytes of the completion so far; `finished`: they are all.
inline Expected expect(std::string_view prompt_tail, std::string_view raw, const std::vector<std::string>& stops,
                       bool finished) {
  Expected expected;
  std::size_t stop_end = std::string_view::npos;
  for (const std::string& stop : stops) {
    const std::size_t at = raw.find(stop);
    if (at == std::string_view::npos) continue;
    const std::size_t end = at + stop.size();
    if (end > stop_end || (end == stop_end && stop.size() <= expected.stop_string.size())) continue;
    stop_end = end;
    expected.stop_string = stop;
    expected.stopped = true;
  }
  for (const std::string& stop : stops)
    for (std::size_t n = 1; n < stop.size(); ++n)
      if (raw.ends_with(stop.substr(0, n))) expected.n_held_for_stop = std::max(expected.n_held_for_stop, n);
  std::size_t limit = raw.size();
  if (expected.stopped) {
    limit = stop_end - expected.stop_string.size();
  } else if (!finished) {
    limit = raw.size() - expected.n_held_for_stop;
  }

  std::string_view from_prompt;
  for (std::size_t n = 1; n <= prompt_tail.size(); ++n)
    if (beginnings().contains(prompt_tail.substr(prompt_tail.size() - n)))
      from_prompt = prompt_tail.substr(prompt_tail.size() - n);
  const std::string both = std::string(from_prompt) + std::string(raw);
  for (const Unit& unit : units(both)) {
    if (unit.end > from_prompt.size() + limit) break;
    if (unit.is_character)
      expected.text += both.substr(unit.begin, unit.end - unit.begin);
    else if (unit.end > from_prompt.size())
      expected.text += "\xEF\xBF\xBD";
    expected.n_bytes_out = unit.end - from_prompt.size();
  }
  return expected;
}

}  // namespace fermata::reference
