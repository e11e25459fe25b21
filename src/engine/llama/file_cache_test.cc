#include "engine/llama/file_cache.h"

#include <gtest/gtest.h>

#include "engine/llama/gguf_fixture.h"

namespace fermata {
namespace {

class FileCacheTest : public testing::Test {
 protected:
  test::TempFolder folder_;
  FileCache cache_{"facts", folder_.file("deep/er")};
};

TEST_F(FileCacheTest, RemembersAcrossObjects) {
  EXPECT_EQ(cache_.find("a"), std::nullopt);
  cache_.put("a", "one");
  cache_.put("b", "two");
  cache_.put("a", "three");
  const FileCache again("facts", folder_.file("deep/er"));
  EXPECT_EQ(again.find("a"), "three");
  EXPECT_EQ(again.find("b"), "two");
  EXPECT_EQ(again.find(""), std::nullopt);
}

TEST_F(FileCacheTest, KeepsLinesLines) {
  cache_.put("key\twith\ntraps", "value\nwith a break\tand a tab");
  EXPECT_EQ(cache_.find("key\twith\ntraps"), "value with a break\tand a tab");
}

TEST_F(FileCacheTest, ForgetsTheOldestBeyondItsLimit) {
  for (std::size_t i = 0; i <= FileCache::kEntriesMax; ++i) cache_.put("key" + std::to_string(i), "v");
  EXPECT_EQ(cache_.find("key0"), std::nullopt);
  EXPECT_EQ(cache_.find("key1"), "v");
}

TEST_F(FileCacheTest, TakesDamageForAnEmptyCache) {
  cache_.put("a", "one");
  test::write_file(folder_.file("deep/er/facts"), std::string("\0\xff\n\n\tx\n", 7));
  EXPECT_EQ(cache_.find("a"), std::nullopt);
  cache_.put("a", "two");
  EXPECT_EQ(cache_.find("a"), "two");
}

TEST_F(FileCacheTest, DoesWithoutAPlaceToWrite) {
  const FileCache nowhere("facts", "/proc/no-such-place");
  nowhere.put("a", "one");
  EXPECT_EQ(nowhere.find("a"), std::nullopt);
}

}  // namespace
}  // namespace fermata
