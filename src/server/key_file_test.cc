#include "server/key_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <fstream>

namespace fermata {
namespace {

class KeyFileTest : public testing::Test {
 protected:
  ~KeyFileTest() override { std::remove(path_.c_str()); }
  void write(const std::string& text, const std::string& path) {
    std::ofstream(path, std::ios::trunc) << text;
    ::chmod(path.c_str(), 0600);
  }
  std::string line(const std::string& name) {
    return api::ApiKeys::make_key(name, "", {api::Scope::kUse})->line + "\n";
  }
  const std::string path_ = testing::TempDir() + "key_file_test.keys";
};

TEST_F(KeyFileTest, AChangeIsSaidOnceAndOnlyAtRest) {
  write(line("a"), path_);
  KeyFile file(path_);
  ASSERT_TRUE(file.read());
  EXPECT_FALSE(file.is_changed());
  EXPECT_FALSE(file.is_changed());
  write(line("a") + line("b"), path_);
  EXPECT_FALSE(file.is_changed()) << "it may still be written";
  EXPECT_TRUE(file.is_changed());
  EXPECT_EQ((*file.read())->size(), 2u);
  EXPECT_FALSE(file.is_changed());
  write(line("c"), path_);
  EXPECT_FALSE(file.is_changed());
  write(line("c") + line("d") + line("e"), path_);
  EXPECT_FALSE(file.is_changed()) << "it was";
  EXPECT_TRUE(file.is_changed());
}

TEST_F(KeyFileTest, AnotherFileOfTheSameNameIsAChange) {
  write(line("a"), path_);
  KeyFile file(path_);
  ASSERT_TRUE(file.read());
  write(line("b"), path_ + ".new");
  ASSERT_EQ(std::rename((path_ + ".new").c_str(), path_.c_str()), 0);
  EXPECT_FALSE(file.is_changed());
  EXPECT_TRUE(file.is_changed());
  ASSERT_TRUE(file.read());
  std::remove(path_.c_str());
  EXPECT_FALSE(file.is_changed());
  EXPECT_TRUE(file.is_changed());
  EXPECT_FALSE(file.read());
  EXPECT_FALSE(file.is_changed()) << "said once, though it is still away";
}

}  // namespace
}  // namespace fermata
