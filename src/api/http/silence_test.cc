#include "api/http/silence.h"

#include <gtest/gtest.h>

namespace fermata::api {
namespace {

TEST(Silence, IsCountedFromWhatWasSaidNotFromWhenItWasLookedAt) {
  ManualClock clock;
  Silence silence(clock, seconds(15));
  for (int second = 0; second < 15; ++second) {  // news every second, of which nothing is said
    EXPECT_EQ(silence.left(), seconds(15 - second));
    clock.advance(seconds(1));
  }
  EXPECT_LE(silence.left(), seconds(0));
  silence.begin();
  EXPECT_EQ(silence.left(), seconds(15));
}

}  // namespace
}  // namespace fermata::api
