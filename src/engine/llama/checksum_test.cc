#include "engine/llama/checksum.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fermata {
namespace {

std::uint64_t xxh64_of(std::string_view text, std::uint64_t seed = 0) {
  return xxh64(std::as_bytes(std::span(text)), seed);
}

// Figures of the reference implementation.
TEST(Xxh64, GivesThePublishedFigures) {
  EXPECT_EQ(xxh64_of(""), 0xEF46DB3751D8E999ull);
  EXPECT_EQ(xxh64_of("a"), 0xD24EC4F1A98C6E5Bull);
  EXPECT_EQ(xxh64_of("abc"), 0x44BC2CF5AD770999ull);
  EXPECT_EQ(xxh64_of("Nobody inspects the spammish repetition"), 0xFBCEA83C8A378BF1ull);
}

TEST(Xxh64, SeesEveryByteAndTheSeed) {
  std::string text(100, 'x');
  const std::uint64_t plain = xxh64_of(text);
  for (char& c : text) {
    c = 'y';
    EXPECT_NE(xxh64_of(text), plain);
    c = 'x';
  }
  EXPECT_NE(xxh64_of(text, 1), plain);
}

TEST(Blake2b, KeepsPiecesApart) {
  auto hex = [](std::vector<std::string> pieces) {
    Blake2b hash;
    for (const auto& piece : pieces) hash.add(piece);
    return hash.hex();
  };
  EXPECT_EQ(hex({"ab", "c"}), hex({"ab", "c"}));
  EXPECT_NE(hex({"ab", "c"}), hex({"a", "bc"}));
  EXPECT_NE(hex({""}), hex({}));
  // BLAKE2b-256 of no bytes.
  EXPECT_EQ(hex({}), "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
}

}  // namespace
}  // namespace fermata
