#include "base/regular_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/file_fixture.h"

namespace fermata {
namespace {

class RegularFileTest : public testing::Test {
 protected:
  std::string file(const std::string& name) const { return temp_.file(name); }
  std::string written(const std::string& name, const std::string& text) const {
    std::ofstream(file(name)) << text;
    return file(name);
  }
  test::TempFolder temp_;
  const std::string& folder_ = temp_.path();
};

TEST_F(RegularFileTest, IsReadUpToItsBound) {
  const std::string path = written("a", std::string(100'000, 'x'));
  EXPECT_EQ(*read_regular_file(path, 100'000), std::string(100'000, 'x'));
  const auto longer = read_regular_file(path, 99'999);
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().code, Code::kTooLarge);
  EXPECT_EQ(*read_regular_file(written("b", ""), 0), "");
}

TEST_F(RegularFileTest, NothingThatWaitsOrNeverEndsIsOpened) {
  ASSERT_EQ(mkfifo(file("pipe").c_str(), 0600), 0);
  for (const std::string& path : {file("pipe"), std::string("/dev/zero"), folder_}) {
    const auto refused = read_regular_file(path, 100);
    ASSERT_FALSE(refused) << path;
    EXPECT_EQ(refused.error().code, Code::kIo) << path;
    EXPECT_TRUE(refused.error().message.starts_with(path)) << refused.error().message;
  }
}

TEST_F(RegularFileTest, WhatIsNotThereIsToldFromWhatCannotBeOpened) {
  EXPECT_EQ(open_regular_file(file("none")).error().code, Code::kNotFound);
  EXPECT_EQ(open_regular_file(written("a", "x") + "/b").error().code, Code::kIo) << "below a file there is nothing";
}

TEST_F(RegularFileTest, TellsWhetherOthersMayWriteIt) {
  const std::string path = written("a", "x");
  for (const auto& [mode, others] : {std::pair(0600, false), {0644, false}, {0660, true}, {0602, true}}) {
    ASSERT_EQ(chmod(path.c_str(), static_cast<mode_t>(mode)), 0);
    const Result<RegularFile> file = open_regular_file(path);
    const FilePermissions& may = file->permissions;
    EXPECT_EQ(may.others_may_write(), others) << mode;
    EXPECT_EQ(may.mode, static_cast<std::uint32_t>(mode));
    EXPECT_EQ(std::pair(may.owner, may.group), std::pair(geteuid(), getegid()));
  }
}

}  // namespace
}  // namespace fermata
