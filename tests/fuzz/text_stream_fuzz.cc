// TextStream against its definition, for any stop strings, prompt, bytes and cuts between pushes: what is held is the
// longest suffix that begins a stop string (or an unfinished character), what is released is the decoded rest, and the
// stop string that is complete first ends it. Cloned after each push, so that a clone must go on alike.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "generation/stop_set.h"
#include "generation/text_stream.h"

namespace fermata {
namespace {

// Takes the fuzzer's bytes apart; gives zeros when they are used up.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}
  bool empty() const { return rest_.empty(); }
  std::size_t number(std::size_t below) { return static_cast<unsigned char>(bytes(1).append(1, '\0')[0]) % below; }
  std::string bytes(std::size_t n) {
    const std::string taken(rest_.substr(0, n));
    rest_.remove_prefix(taken.size());
    return taken;
  }

 private:
  std::string_view rest_;
};

// Length of the unit at the front by table 3-7 of Unicode, spelt out: {bytes, is a character, more bytes decide}.
struct Unit {
  std::size_t n_bytes;
  bool valid;
  bool open;
};
Unit unit_of(std::string_view s) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned lead = at(0);
  if (lead < 0x80) return {1, true, false};
  if (lead < 0xC2 || lead > 0xF4) return {1, false, false};
  const std::size_t n = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  for (std::size_t i = 1; i < n; ++i) {
    if (i == s.size()) return {i, false, true};
    unsigned low = 0x80, high = 0xBF;
    if (i == 1 && lead == 0xE0) low = 0xA0;
    if (i == 1 && lead == 0xED) high = 0x9F;
    if (i == 1 && lead == 0xF0) low = 0x90;
    if (i == 1 && lead == 0xF4) high = 0x8F;
    if (at(i) < low || at(i) > high) return {i, false, false};
  }
  return {n, true, false};
}

// The bytes at the end of a prompt that the completion may make a character.
std::string_view open_end(std::string_view prompt) {
  for (std::size_t n = std::min<std::size_t>(3, prompt.size()); n > 0; --n) {
    const std::string_view end = prompt.substr(prompt.size() - n);
    if (const Unit unit = unit_of(end); unit.open && unit.n_bytes == n) return end;
  }
  return {};
}

struct Expected {
  std::string text;
  std::size_t n_out = 0;
};
// What may be out when all of `raw`, which follows `prompt`, is known and its bytes from `cut` on are held back.
Expected decode(std::string_view prompt, std::string_view raw, std::size_t cut) {
  const std::string_view before = open_end(prompt);
  const std::string all = std::string(before) + std::string(raw);
  Expected out;
  for (std::size_t at = 0; at < before.size() + cut;) {
    const Unit unit = unit_of(std::string_view(all).substr(at));
    if (unit.open || at + unit.n_bytes > before.size() + cut) break;
    if (unit.valid)
      out.text += all.substr(at, unit.n_bytes);
    else if (at + unit.n_bytes > before.size())
      out.text += "\xEF\xBF\xBD";
    at += unit.n_bytes;
    out.n_out = at - before.size();
  }
  return out;
}

// Where the first complete stop string begins (of those complete at the same byte the longest), or npos.
std::size_t stop_begin(std::string_view raw, const std::vector<std::string>& stops) {
  for (std::size_t end = 1; end <= raw.size(); ++end) {
    std::size_t longest = 0;
    for (const std::string& stop : stops)
      if (raw.substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
    if (longest > 0) return end - longest;
  }
  return std::string_view::npos;
}

std::size_t hold_begin(std::string_view raw, const std::vector<std::string>& stops) {
  for (std::size_t begin = 0; begin < raw.size(); ++begin)
    for (const std::string& stop : stops)
      if (std::string_view(stop).starts_with(raw.substr(begin))) return begin;
  return raw.size();
}

void check(Input input) {
  std::vector<std::string> stops;
  for (std::size_t n = input.number(4); n > 0; --n) {
    std::string stop = input.bytes(1 + input.number(6));
    if (!stop.empty()) stops.push_back(std::move(stop));
  }
  TextStream stream(std::make_shared<StopSet>(stops));
  const std::string prompt = input.bytes(input.number(5));
  stream.start_after(prompt);
  std::string raw, released;
  while (!input.empty() && !stream.stopped() && raw.size() < 512) {
    const std::string piece = input.bytes(input.number(8));
    raw += piece;
    TextStream clone = stream;
    const TextStream::Step step = stream.push(piece);
    FERMATA_CHECK(clone.push(piece).released == step.released);
    stream = std::move(clone);
    released += step.released;
    const std::size_t stop = stop_begin(raw, stops);
    const Expected expected = decode(prompt, raw, stop == std::string_view::npos ? hold_begin(raw, stops) : stop);
    FERMATA_CHECK_EQ(stream.stopped(), stop != std::string_view::npos);
    FERMATA_CHECK_EQ(step.stopped, stream.stopped());
    FERMATA_CHECK(released == expected.text);
    FERMATA_CHECK_EQ(stream.n_bytes_out(), expected.n_out);
    FERMATA_CHECK_EQ(stream.n_bytes_in(), raw.size());
    if (stream.stopped()) FERMATA_CHECK(std::string_view(raw).substr(stop).starts_with(stream.stop_string()));
  }
  released += stream.finish().released;
  const std::size_t stop = stop_begin(raw, stops);
  FERMATA_CHECK(released == decode(prompt, raw, std::min(stop, raw.size())).text);
  FERMATA_CHECK(stream.finish().released.empty());
}

}  // namespace
}  // namespace fermata

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fermata::check(fermata::Input(data, size));
  return 0;
}
