#include "base/scratch_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/file_fixture.h"

namespace fermata {
namespace {

class ScratchFileTest : public testing::Test {
 protected:
  std::size_t n_files() const {
    const std::filesystem::directory_iterator all(folder_.path());
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }
  ScratchFile make() {
    auto made = ScratchFile::make(target_);
    EXPECT_TRUE(made) << made.error().message;
    return *std::move(made);
  }
  test::TempFolder folder_;
  std::string target_ = folder_.file("model.gguf");
};

TEST_F(ScratchFileTest, TakesTheTargetsNameWhenWhole) {
  {
    ScratchFile scratch = make();
    test::write_file(scratch.path(), "whole");
    EXPECT_TRUE(scratch.flush());
    EXPECT_FALSE(std::filesystem::exists(target_));
    EXPECT_TRUE(scratch.put_in_place());
  }
  EXPECT_EQ(test::read_file(target_), "whole");
  EXPECT_EQ(n_files(), 1u);
}

TEST_F(ScratchFileTest, GoesWhenItIsNotPutInPlace) {
  { const ScratchFile scratch = make(); }
  EXPECT_EQ(n_files(), 0u);
}

TEST_F(ScratchFileTest, TwoAtOnceLeaveEachOtherAlone) {
  ScratchFile first = make();
  test::write_file(first.path(), "first");
  ScratchFile second = make();
  EXPECT_NE(first.path(), second.path());
  EXPECT_EQ(test::read_file(first.path()), "first");
  test::write_file(second.path(), "second");
  EXPECT_TRUE(second.put_in_place());
  EXPECT_TRUE(first.put_in_place());
  EXPECT_EQ(test::read_file(target_), "first");
}

TEST_F(ScratchFileTest, WhatAKilledRunLeftIsRemoved) {
  const pid_t child = fork();
  if (child == 0) {
    const auto scratch = ScratchFile::make(target_);
    _exit(scratch ? 0 : 1);  // as a kill would: no destructor runs
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  ASSERT_EQ(n_files(), 1u);
  { const ScratchFile scratch = make(); }
  EXPECT_EQ(n_files(), 0u);
}

TEST_F(ScratchFileTest, RemovesNothingButItsOwn) {
  for (const char* name : {"model.gguf.part1", "model.gguf.part-1", "model.gguf.part-a-0", "other.gguf.part-1-0"})
    test::write_file(folder_.file(name), "a user's");
  ASSERT_EQ(mkfifo(folder_.file("model.gguf.part-1-0").c_str(), 0600), 0);  // must not be waited for either
  { const ScratchFile scratch = make(); }
  EXPECT_EQ(n_files(), 5u);
}

TEST_F(ScratchFileTest, SaysWhereItCannotWrite) {
  const auto made = ScratchFile::make(folder_.file("no/such/folder/x"));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kIo);
}

}  // namespace
}  // namespace fermata
