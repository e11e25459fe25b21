#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace fermata {

// One byte range per byte of an encoding; every choice of bytes within is the encoding of one code point of the range.
using Utf8Sequence = std::vector<std::pair<std::uint8_t, std::uint8_t>>;

// Code point ranges (inclusive) as UTF-8; surrogates are left out. The ranges may overlap. Method of RE2 and of the
// utf8-ranges crate: cut where lengths or leading bytes change.
std::vector<Utf8Sequence> utf8_sequences(std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges);

// All code points but those.
std::vector<std::pair<std::uint32_t, std::uint32_t>> complement(
    std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges);

}  // namespace fermata
