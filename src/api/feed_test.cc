#include "api/feed.h"

#include <gtest/gtest.h>

#include <vector>

namespace fermata::api {
namespace {

// A client that has room for two messages until it reads.
class FeedTest : public ::testing::Test {
 protected:
  void say(int first, int last) {
    for (int i = first; i <= last; ++i) feed_.take(announce("token", std::to_string(i)));
  }
  std::vector<std::string> read() { return std::exchange(waiting_, {}); }

  std::vector<std::string> waiting_;
  Feed feed_{[this](const Announcement& event) {
    if (waiting_.size() >= 2) return false;
    waiting_.push_back(std::string(event->type) + " " + event->data);
    return true;
  }};
};

using Messages = std::vector<std::string>;

TEST_F(FeedTest, EachLostEventIsCountedOnceHoweverOftenThereIsNoRoomToSaySo) {
  say(1, 5);
  EXPECT_EQ(read(), (Messages{"token 1", "token 2"}));
  say(6, 9);
  EXPECT_EQ(read(), (Messages{R"(lost {"type":"lost","n":3})", "token 6"}));
  say(10, 10);
  EXPECT_EQ(read(), (Messages{R"(lost {"type":"lost","n":3})", "token 10"}));
}

TEST_F(FeedTest, ALossStandsWhereTheEventsAreMissing) {
  say(1, 3);
  waiting_.erase(waiting_.begin());  // room for one, which the loss takes
  say(4, 4);
  EXPECT_EQ(read(), (Messages{"token 2", R"(lost {"type":"lost","n":1})"}));
  say(5, 5);
  EXPECT_EQ(read(), (Messages{R"(lost {"type":"lost","n":1})", "token 5"})) << "of 4, before what came after it";
}

TEST_F(FeedTest, ALossIsToldThoughNothingFollows) {
  say(1, 2);
  EXPECT_FALSE(feed_.tell_lost()) << "nothing was";
  say(3, 3);
  EXPECT_FALSE(feed_.tell_lost()) << "there is no room yet";
  EXPECT_EQ(read().size(), 2u);
  EXPECT_TRUE(feed_.tell_lost());
  EXPECT_EQ(read(), (Messages{R"(lost {"type":"lost","n":1})"}));
  say(4, 4);
  EXPECT_EQ(read(), (Messages{"token 4"}));
}

}  // namespace
}  // namespace fermata::api
