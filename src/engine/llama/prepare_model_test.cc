#include "engine/llama/prepare_model.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "engine/llama/gguf_fixture.h"

// What is decided before libllama is asked; hostile_model_test.cc has the rest.
namespace fermata {
namespace {

class PrepareModelTest : public testing::Test {
 protected:
  PrepareModelTest() { test::write_file(options_.source, test::SmallGguf{}.bytes()); }
  std::string refusal() {
    const auto made = prepare_model(options_);
    return made ? "made" : made.error().message;
  }
  test::TempFolder folder_;
  PrepareOptions options_{folder_.file("source.gguf"), folder_.file("target.gguf"), WeightType::kQ8_0, 1};
};

TEST_F(PrepareModelTest, WhatStandsInTheWayIsNamedAndStays) {
  const auto expect_refused = [&](const std::string& why) {
    const std::string before = test::read_file(options_.target);
    EXPECT_NE(refusal().find(why), std::string::npos) << refusal();
    EXPECT_EQ(test::read_file(options_.target), before);
  };
  test::write_file(options_.target, "dear all");
  expect_refused("is no model");
  test::SmallGguf same;
  test::write_file(options_.target, same.bytes());
  expect_refused("has weights of a type it does not name, not Q8_0");
  test::SmallGguf other;
  other.arch = "qwen2";
  test::write_file(options_.target, other.bytes());
  expect_refused("is another model");
}

TEST_F(PrepareModelTest, NeverWritesOverItsSource) {
  options_.rewrite = true;
  options_.target = options_.source;
  EXPECT_NE(refusal().find("is the source itself"), std::string::npos);
  options_.target = folder_.file("link.gguf");
  std::filesystem::create_symlink(options_.source, options_.target);
  EXPECT_NE(refusal().find("is the source itself"), std::string::npos);
  EXPECT_EQ(test::read_file(options_.source), test::SmallGguf{}.bytes());
}

TEST_F(PrepareModelTest, NeverWaitsForAPipe) {
  ASSERT_EQ(mkfifo(options_.target.c_str(), 0600), 0);
  EXPECT_NE(refusal().find("is no model"), std::string::npos) << refusal();
  options_.source = options_.target;
  options_.target = folder_.file("other.gguf");
  EXPECT_NE(refusal().find("not a regular file"), std::string::npos) << refusal();
}

}  // namespace
}  // namespace fermata
