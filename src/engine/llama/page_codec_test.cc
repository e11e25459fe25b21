#include "engine/llama/page_codec.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace fermata {
namespace {

constexpr int kLayers = 3;
constexpr std::size_t kKeyBytes = 12;
constexpr std::size_t kValueBytes = 20;
const std::string kFingerprint(64, 'a');

// libllama's state of one sequence, its cells holding these positions in this order. A row's bytes tell its position.
std::vector<std::byte> blob_of(const std::vector<Position>& positions) {
  std::vector<std::byte> blob;
  auto put = [&](auto value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    blob.insert(blob.end(), bytes.begin(), bytes.end());
  };
  put(std::uint32_t{0xfeed});
  put(std::int32_t{9});
  put(std::uint32_t{1});
  put(static_cast<std::uint32_t>(positions.size()));
  for (const Position position : positions) {
    put(position);
    put(std::uint32_t{1});
    put(std::int32_t{9});
  }
  put(std::uint32_t{0});
  put(std::uint32_t{kLayers});
  for (const std::size_t row : {kKeyBytes, kValueBytes})
    for (int layer = 0; layer < kLayers; ++layer) {
      put(std::int32_t{1});
      put(static_cast<std::uint64_t>(row));
      for (const Position position : positions)
        for (std::size_t i = 0; i < row; ++i) put(static_cast<std::uint8_t>(position * 10 + layer));
    }
  return blob;
}

class PageCodecTest : public testing::Test {
 protected:
  PageCodecTest() : layout_(*KvLayout::learn(blob_of({0}))) {}

  Page page_of(const std::vector<Position>& positions, Position begin) {
    Page page{begin, begin + static_cast<Position>(positions.size()), std::vector<std::byte>(kPageHeaderBytes)};
    EXPECT_TRUE(layout_.blob_to_body(blob_of(positions), page.begin, page.end, page.bytes));
    seal_page(page, kFingerprint);
    return page;
  }
  std::string refusal(const Page& page) {
    const auto body = open_page(page, kFingerprint, layout_);
    return body ? std::string() : body.error().detail;
  }

  KvLayout layout_;
};

TEST_F(PageCodecTest, LearnsTheShapeOfTheBlob) {
  EXPECT_EQ(layout_.row_bytes(), kLayers * (kKeyBytes + kValueBytes));
  for (const std::size_t n : {1u, 2u, 17u})
    EXPECT_EQ(layout_.blob_bytes(n), blob_of(std::vector<Position>(n)).size()) << n;
}

TEST_F(PageCodecTest, RefusesToLearnAnotherShape) {
  const auto blob = blob_of({0});
  for (std::size_t n = 0; n < blob.size(); ++n) EXPECT_FALSE(KvLayout::learn(std::span(blob).first(n))) << n;
  auto longer = blob;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(KvLayout::learn(longer));
  EXPECT_FALSE(KvLayout::learn(blob_of({0, 1})));
}

TEST_F(PageCodecTest, GivesBackTheBlobInPositionOrder) {
  const Page page = page_of({5, 6, 7, 8}, 5);
  const auto body = open_page(page, kFingerprint, layout_);
  ASSERT_TRUE(body) << body.error().detail;
  EXPECT_EQ(layout_.body_to_blob(*body, 5, 9, SeqId{9}), blob_of({5, 6, 7, 8}));
}

TEST_F(PageCodecTest, IsTheSameWhateverTheOrderOfCells) {
  EXPECT_EQ(page_of({7, 5, 8, 6}, 5).bytes, page_of({5, 6, 7, 8}, 5).bytes);
}

TEST_F(PageCodecTest, RefusesABlobOfOtherPositions) {
  for (const auto& positions : {std::vector<Position>{5, 6, 6}, {5, 6, 9}, {4, 5, 6}, {5, 6}}) {
    std::vector<std::byte> out;
    EXPECT_FALSE(layout_.blob_to_body(blob_of(positions), 5, 8, out));
  }
}

TEST_F(PageCodecTest, RefusesEveryFlippedBit) {
  const Page good = page_of({0, 1}, 0);
  ASSERT_EQ(refusal(good), "");
  for (std::size_t at = 0; at < good.bytes.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      Page bad = good;
      bad.bytes[at] ^= std::byte(1 << bit);
      EXPECT_NE(refusal(bad), "") << "byte " << at << " bit " << bit;
    }
}

TEST_F(PageCodecTest, RefusesEveryCutAndAnythingBehind) {
  const Page good = page_of({0, 1}, 0);
  for (std::size_t n = 0; n < good.bytes.size(); ++n) {
    Page bad = good;
    bad.bytes.resize(n);
    EXPECT_NE(refusal(bad), "") << n;
  }
  Page bad = good;
  bad.bytes.push_back(std::byte{0});
  EXPECT_NE(refusal(bad), "");
}

TEST_F(PageCodecTest, NamesWhatDoesNotFit) {
  Page page = page_of({0, 1}, 0);
  page.begin = 1;
  page.end = 3;
  EXPECT_EQ(refusal(page), "positions differ from the page's own");
  page = page_of({0, 1}, 0);
  seal_page(page, std::string(64, 'b'));
  EXPECT_EQ(refusal(page), "fingerprint");
  std::vector<Position> many;
  for (Position i = 0; i <= limits::kPageTokens; ++i) many.push_back(i);
  EXPECT_EQ(refusal(page_of(many, 0)), "positions");
  page = page_of({0, 1}, 0);
  page.bytes.resize(page.bytes.size() - layout_.row_bytes());
  seal_page(page, kFingerprint);
  EXPECT_EQ(refusal(page), "size");
}

}  // namespace
}  // namespace fermata
