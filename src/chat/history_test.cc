#include "chat/history.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "base/file_fixture.h"

namespace fermata::chat {
namespace {

namespace fs = std::filesystem;
using Entries = std::vector<std::string>;

class HistoryTest : public testing::Test {
 protected:
  std::string file() const { return fermata::test::read_file(path_); }
  void write(const std::string& text) {
    fs::create_directories(fs::path(path_).parent_path());
    fermata::test::write_file(path_, text);
  }

  fermata::test::TempFolder folder_;
  const std::string path_ = folder_.file("state/fermata/history");
};

TEST_F(HistoryTest, ComesBackAsItWas) {
  History first(path_);
  ASSERT_TRUE(first.load());
  for (const char* entry : {"one", "two\nlines \\ \"quoted\"", "日本", "日本"}) ASSERT_TRUE(first.add(entry));
  History second(path_);
  ASSERT_TRUE(second.load());
  EXPECT_EQ(second.entries(), (Entries{"one", "two\nlines \\ \"quoted\"", "日本"}));
  struct stat status {};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  for (const auto& entry : fs::directory_iterator(fs::path(path_).parent_path())) EXPECT_EQ(entry.path(), path_);
}

TEST_F(HistoryTest, TwoTalksKeepEachOthersEntries) {
  History one(path_), other(path_);
  ASSERT_TRUE(one.load());
  ASSERT_TRUE(other.load());
  ASSERT_TRUE(one.add("a"));
  ASSERT_TRUE(other.add("b"));
  History later(path_);
  ASSERT_TRUE(later.load());
  EXPECT_EQ(later.entries(), (Entries{"a", "b"}));
}

TEST_F(HistoryTest, DamagedOnesAreToldOfAndBeginAnew) {
  for (const std::string text : {"", "x", "fermata history 2\n", "fermata history 1\n\"a", "fermata history 1\n\"a\n",
                                 "fermata history 1\n7\n", "fermata history 1\n\n", "fermata history 1\n\"\xff\"\n"}) {
    write(text);
    History history(path_);
    const Result<void> loaded = history.load();
    ASSERT_FALSE(loaded) << text;
    EXPECT_NE(loaded.error().message.find("begins anew"), std::string::npos);
    ASSERT_TRUE(history.add("new"));
    EXPECT_EQ(file(), "fermata history 1\n\"new\"\n");
  }
}

TEST_F(HistoryTest, IsNotReadBeyondItsLimitNorFromWhatIsNoFile) {
  write(std::string(2 * 1024 * 1024, 'x'));
  EXPECT_FALSE(History(path_).load());
  fs::remove(path_);
  fs::create_directories(path_);
  EXPECT_FALSE(History(path_).load());
  EXPECT_FALSE(History(path_).add("x"));
}

TEST_F(HistoryTest, IsBounded) {
  Entries many;
  for (int i = 0; i < 1500; ++i) many.push_back(std::to_string(i));
  const Result<Entries> kept = history_of(file_of(many));
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->size(), 1000u);
  EXPECT_EQ(kept->front(), "500");
  EXPECT_EQ(kept->back(), "1499");
  const Entries large = {"small", std::string(400'000, 'a'), std::string(400'000, 'b'), std::string(400'000, 'c')};
  EXPECT_LE(file_of(large).size(), 1024u * 1024u);
  EXPECT_EQ(history_of(file_of(large)).value(), (Entries{large[2], large[3]}));
  EXPECT_EQ(history_of(file_of({"small", std::string(2'000'000, 'a')})).value(), Entries{"small"});
}

TEST(History, WithoutAPathIsInMemoryAlone) {
  History history;
  ASSERT_TRUE(history.load());
  ASSERT_TRUE(history.add("x"));
  EXPECT_EQ(history.entries(), Entries{"x"});
}

}  // namespace
}  // namespace fermata::chat
