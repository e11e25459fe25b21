#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/fake/fake_model.h"

namespace fermata {

// The fake's page, little-endian as the machine:
//
//   offset  0      4        8        16     20    24                        24 + 16 n
//          | magic | version | weights | begin | n | n x (token 4, pos 4, digest 8) | checksum 8 |
//
// The checksum is over all bytes before it.
std::vector<std::byte> seal_fake_page(std::uint64_t weights, Position begin, std::span<const FakeCell> cells);

// Refuses (kInvalidArgument) whatever seal_fake_page() did not make for this range and these weights, naming what is
// wrong. The cells are in position order.
Result<std::vector<FakeCell>> open_fake_page(std::uint64_t weights, const Page& page);

}  // namespace fermata
