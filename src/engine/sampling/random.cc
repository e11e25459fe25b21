#include "engine/sampling/random.h"

namespace fermata {
namespace {

constexpr std::uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

constexpr std::uint32_t low32(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
constexpr std::uint32_t high32(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); }

std::array<std::uint32_t, 4> draw(const DrawPlace& place, Stream stream) {
  const std::uint64_t key = raw(place.key);
  return philox4x32({static_cast<std::uint32_t>(place.position), raw(stream), raw(place.attempt), 0},
                    {low32(key), high32(key)});
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> c, std::array<std::uint32_t, 2> k) {
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{kMultiplier0} * c[0];
    const std::uint64_t product1 = std::uint64_t{kMultiplier1} * c[2];
    c = {high32(product1) ^ c[1] ^ k[0], low32(product1), high32(product0) ^ c[3] ^ k[1], low32(product0)};
    k[0] += kWeyl0;
    k[1] += kWeyl1;
  }
  return c;
}

double uniform_double(const DrawPlace& place, Stream stream) {
  const auto words = draw(place, stream);
  const std::uint64_t bits = (std::uint64_t{words[0]} << 32 | words[1]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

float uniform_float(const DrawPlace& place, Stream stream) {
  return static_cast<float>(draw(place, stream)[2] >> 8) * 0x1p-24f;
}

SamplingKey key_for_branch(SamplingKey parent, std::uint32_t index) {
  if (index == 0) return parent;
  const std::uint64_t key = raw(parent);
  const auto words = philox4x32({index, raw(Stream::kBranch), 0, 1}, {low32(key), high32(key)});
  return SamplingKey{std::uint64_t{words[0]} << 32 | words[1]};
}

}  // namespace fermata
