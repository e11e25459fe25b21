#include "cli/input_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "engine/llama/gguf_fixture.h"

namespace fermata::cli {
namespace {

class InputFile : public testing::Test {
 protected:
  std::string refusal(const std::string& path) {
    const auto read = read_input(path, 100);
    return read ? "read" : read.error().message;
  }
  test::TempFolder folder_;
};

TEST_F(InputFile, ReadsRegularFilesAndLinksToThem) {
  test::write_file(folder_.file("text"), std::string("a\0b", 3));
  std::filesystem::create_symlink(folder_.file("text"), folder_.file("link"));
  EXPECT_EQ(*read_input(folder_.file("text"), 3), std::string("a\0b", 3));
  EXPECT_EQ(*read_input(folder_.file("link"), 3), std::string("a\0b", 3));
}

TEST_F(InputFile, RefusesWithoutWaiting) {
  const std::string pipe = folder_.file("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(refusal(pipe), pipe + " is not a regular file");
  EXPECT_EQ(refusal("/dev/zero"), "/dev/zero is not a regular file");
  EXPECT_EQ(refusal(folder_.path()), folder_.path() + " is not a regular file");
  EXPECT_EQ(refusal(folder_.file("absent")), folder_.file("absent") + " cannot be opened");
  EXPECT_EQ(read_input(folder_.file("absent"), 1).error().code, Code::kInvalidArgument) << "the user named it";
  test::write_file(folder_.file("long"), std::string(101, 'x'));
  EXPECT_EQ(read_input(folder_.file("long"), 100).error().code, Code::kTooLarge);
}

TEST_F(InputFile, ReadsStandardInputFromAPipe) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int before = dup(STDIN_FILENO);
  dup2(ends[0], STDIN_FILENO);
  ASSERT_EQ(write(ends[1], "hello", 5), 5);
  close(ends[1]);
  EXPECT_EQ(*read_input("-", 5), "hello");
  dup2(before, STDIN_FILENO);
  close(before);
  close(ends[0]);
}

}  // namespace
}  // namespace fermata::cli
