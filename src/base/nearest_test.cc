#include "base/nearest.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fermata {
namespace {

const std::vector<std::string_view> kWords{"max_tokens", "min_p", "stop", "stream", "top_p"};

TEST(Nearest, IsWhatFewChangesMake) {
  EXPECT_EQ(nearest("max_token", kWords), "max_tokens");
  EXPECT_EQ(nearest("maxtokens", kWords), "max_tokens");
  EXPECT_EQ(nearest("stpo", kWords), "stop") << "two letters in the wrong order are two changes";
  EXPECT_EQ(nearest("stop", kWords), "stop");
}

TEST(Nearest, IsNothingWhereNoneIsNear) {
  EXPECT_EQ(nearest("temperature", kWords), "");
  EXPECT_EQ(nearest("", kWords), "");
  EXPECT_EQ(nearest("x", kWords), "");
  EXPECT_EQ(nearest("stop", {}), "");
  EXPECT_EQ(nearest(std::string(1 << 20, 's'), kWords), "") << "nobody misspells so much";
}

}  // namespace
}  // namespace fermata
