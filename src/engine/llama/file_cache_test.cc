#include "engine/llama/file_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

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

TEST_F(FileCacheTest, NeverWaitsForAPipe) {
  std::filesystem::create_directories(folder_.file("deep/er"));
  ASSERT_EQ(mkfifo(folder_.file("deep/er/facts").c_str(), 0600), 0);
  EXPECT_EQ(cache_.find("a"), std::nullopt);
  cache_.put("a", "one");
  EXPECT_EQ(cache_.find("a"), "one");
}

TEST_F(FileCacheTest, FollowsALinkToAFileAndReadsNoDevice) {
  cache_.put("a", "one");
  std::filesystem::create_symlink(folder_.file("deep/er/facts"), folder_.file("linked"));
  EXPECT_EQ(FileCache("linked", folder_.path()).find("a"), "one");
  std::filesystem::create_symlink("/dev/zero", folder_.file("endless"));
  EXPECT_EQ(FileCache("endless", folder_.path()).find("a"), std::nullopt);
}

TEST_F(FileCacheTest, LeavesNothingBeside) {
  test::write_file(folder_.file("facts.part-1-0"), "left by a killed run");
  const FileCache cache("facts", folder_.path());
  cache.put("a", "one");
  const std::filesystem::directory_iterator all(folder_.path());
  EXPECT_EQ(std::distance(begin(all), end(all)), 1);
}

TEST_F(FileCacheTest, DoesWithoutAPlaceToWrite) {
  const FileCache nowhere("facts", "/proc/no-such-place");
  nowhere.put("a", "one");
  EXPECT_EQ(nowhere.find("a"), std::nullopt);
}

}  // namespace
}  // namespace fermata
