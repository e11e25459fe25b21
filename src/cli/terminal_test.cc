#include "cli/terminal.h"

#include <gtest/gtest.h>

namespace fermata::cli {
namespace {

std::string shown(const std::vector<float>& parts) {
  std::FILE* const file = std::tmpfile();
  {
    ProgressLine progress("loading x", file);
    for (const float part : parts) progress.show(part);
  }
  std::rewind(file);
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

TEST(ProgressLine, SaysAFewWholeLinesOffATerminal) {
  std::vector<float> parts;
  for (int i = 0; i <= 1000; ++i) parts.push_back(static_cast<float>(i) / 1000);
  const std::string once = "loading x 0 %\nloading x 50 %\nloading x 100 %\n";
  EXPECT_EQ(shown(parts), once);
  std::vector<float> twice = parts;  // a model that is loaded again with other kernels
  twice.insert(twice.end(), parts.begin(), parts.end());
  EXPECT_EQ(shown(twice), once);
  EXPECT_EQ(shown({}), "");
}

TEST(ProgressLine, WhatIsSaidInItsPlaceIsNotForFiles) {
  std::FILE* const file = std::tmpfile();
  ProgressLine("loading x", file).say("checking");
  std::rewind(file);
  EXPECT_EQ(std::fgetc(file), EOF);
  std::fclose(file);
}

TEST(Quoted, ShowsControlCharacters) { EXPECT_EQ(quoted("a\n\"\x1b"), "\"a\\n\\\"\\x1b\""); }

}  // namespace
}  // namespace fermata::cli
