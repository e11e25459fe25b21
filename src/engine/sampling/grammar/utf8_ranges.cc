#include "engine/sampling/grammar/utf8_ranges.h"

#include <algorithm>
#include <cstddef>

namespace fermata {
namespace {

using Range = std::pair<std::uint32_t, std::uint32_t>;
constexpr std::uint32_t kMax = 0x10FFFF;

std::vector<Range> merged(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end());
  std::vector<Range> out;
  for (const Range& range : ranges) {
    if (!out.empty() && range.first <= out.back().second + 1) {
      out.back().second = std::max(out.back().second, range.second);
    } else {
      out.push_back(range);
    }
  }
  return out;
}

std::size_t length_of(std::uint32_t c) { return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4; }

std::vector<std::uint8_t> encode(std::uint32_t c) {
  const std::size_t n = length_of(c);
  constexpr std::uint8_t kLead[] = {0, 0, 0xC0, 0xE0, 0xF0};
  std::vector<std::uint8_t> bytes(n);
  for (std::size_t i = n; i-- > 1; c >>= 6) bytes[i] = static_cast<std::uint8_t>(0x80 | (c & 63));
  bytes[0] = static_cast<std::uint8_t>(kLead[n] | c);
  return bytes;
}

// Where the range must be cut for its parts to be products of byte ranges; 0: nowhere. The cut is a part's last point.
std::uint32_t cut(std::uint32_t low, std::uint32_t high) {
  if (low < 0xD800 && high >= 0xD800) return 0xD7FF;
  if (low >= 0xD800 && low <= 0xDFFF && high > 0xDFFF) return 0xDFFF;
  for (const std::uint32_t end : {0x7Fu, 0x7FFu, 0xFFFFu}) {
    if (low <= end && high > end) return end;
  }
  for (std::size_t i = 1; i < length_of(low); ++i) {
    const std::uint32_t mask = (1u << (6 * i)) - 1;
    if ((low & ~mask) == (high & ~mask)) continue;
    if ((low & mask) != 0) return low | mask;
    if ((high & mask) != mask) return (high & ~mask) - 1;
  }
  return 0;
}

void append(std::vector<Utf8Sequence>& out, std::uint32_t low, std::uint32_t high) {
  while (true) {
    const std::uint32_t end = cut(low, high);
    if (end == 0) break;
    append(out, low, end);
    low = end + 1;
  }
  if (low >= 0xD800 && low <= 0xDFFF) return;
  const auto first = encode(low), last = encode(high);
  Utf8Sequence sequence;
  for (std::size_t i = 0; i < first.size(); ++i) sequence.emplace_back(first[i], last[i]);
  out.push_back(std::move(sequence));
}

}  // namespace

std::vector<Utf8Sequence> utf8_sequences(std::vector<Range> ranges) {
  std::vector<Utf8Sequence> out;
  for (const auto& [low, high] : merged(std::move(ranges))) append(out, low, high);
  return out;
}

std::vector<Range> complement(std::vector<Range> ranges) {
  std::vector<Range> out;
  std::uint32_t next = 0;
  for (const auto& [low, high] : merged(std::move(ranges))) {
    if (low > next) out.emplace_back(next, low - 1);
    next = high + 1;
  }
  if (next <= kMax) out.emplace_back(next, kMax);
  return out;
}

}  // namespace fermata
