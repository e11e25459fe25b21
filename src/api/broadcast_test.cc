#include "api/broadcast.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "api/desk_fixture.h"
#include "base/limits.h"

namespace fermata::api {
namespace {

class BroadcastTest : public DeskTest {
 protected:
  static EventFilter filter(const std::string& types, const Principal& who = {}) {
    HttpRequest request;
    request.principal = who;
    request.query["types"] = types;
    return *EventFilter::parse(request);
  }
  auto keep(std::vector<Announcement>& into) {
    return [&into](const Announcement& announcement) { into.push_back(announcement); };
  }

  std::shared_ptr<Broadcast> broadcast_ = Broadcast::of(desk_);
};

TEST_F(BroadcastTest, WhatManyWantIsMadeIntoTextOnce) {
  std::vector<Announcement> first;
  std::vector<Announcement> second;
  std::vector<Announcement> ends;
  const auto a = broadcast_->follow({}, filter(""), keep(first));
  const auto b = broadcast_->follow({}, filter("created,running,token,finished"), keep(second));
  const auto c = broadcast_->follow({}, filter("finished"), keep(ends));
  until_ended(open(call(20)));
  ASSERT_GT(first.size(), 2u);
  EXPECT_EQ(first, second) << "the same objects, not equal ones";
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends.back(), first.back());
  EXPECT_EQ(ends.back()->type, "finished");
}

TEST_F(BroadcastTest, ThatThereIsOneIsToldFirstAlsoOfOneThatWaitsForItsSession) {
  std::vector<Announcement> heard;
  const auto following = broadcast_->follow({}, filter("created,running,finished"), keep(heard));
  Call message = call();
  message.fermata.session = "talk";
  message.fermata.on_new_message = OnNewMessage::kQueue;
  const auto first = open(message);
  until([&] { return first->recording.state() == State::kRunning; });
  const auto second = open(message);
  ASSERT_TRUE(run(desk_.cancel(second, EndReason::kCancelled)));
  std::string told;
  for (const Announcement& one : heard) {
    const json::value event = *parse_json(one->data);
    told += std::string(one->type) + (event.at("generation").get_string() == first->id() ? "1 " : "2 ");
    EXPECT_EQ(event.at("session"), "talk");
    if (one->type == "created") {
      EXPECT_EQ(event.at("seq"), 0);
    }
  }
  EXPECT_EQ(told, "created1 running1 created2 finished2 ");
}

TEST_F(BroadcastTest, AnothersTenantIsNotHeard) {
  std::vector<Announcement> heard;
  const Principal me = of_tenant("mine");
  const auto following = broadcast_->follow(me, filter("", me), keep(heard));
  until_ended(open(call(3), of_tenant("yours")));
  EXPECT_TRUE(heard.empty());
  until_ended(open(call(3), me));
  EXPECT_FALSE(heard.empty());
}

TEST_F(BroadcastTest, AKeyFollowsSoManyTimesAndAPlaceIsFreeAgain) {
  std::vector<Broadcast::Following> places;
  const auto come = [&](const Principal& who) { return broadcast_->follow(who, filter("", who), [](const auto&) {}); };
  for (std::size_t i = 0; i < limits::kFollowersPerKeyMax; ++i) places.push_back(*come(of_tenant("t", "one")));
  const auto refused = come(of_tenant("t", "one"));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::kBusy);
  EXPECT_TRUE(come(of_tenant("t", "two")).has_value());
  places.pop_back();
  EXPECT_TRUE(come(of_tenant("t", "one")).has_value());
}

TEST_F(BroadcastTest, TheServerFollowsSoManyTimes) {
  std::vector<Broadcast::Following> places;
  for (std::size_t i = 0; i < limits::kFollowersMax; ++i) {
    const Principal who = of_tenant("t", std::to_string(i));
    places.push_back(*broadcast_->follow(who, filter("", who), [](const auto&) {}));
  }
  EXPECT_FALSE(broadcast_->follow(of_tenant("t", "late"), filter(""), [](const auto&) {}).has_value());
}

TEST_F(BroadcastTest, WhoLeftIsToldNothingMore) {
  std::vector<Announcement> heard;
  int n_ends = 0;
  auto following = broadcast_->follow({}, filter(""), keep(heard), [&] { ++n_ends; });
  *following = {};
  const auto other = broadcast_->follow(
      {}, filter(""), [](const auto&) {}, [&] { n_ends += 10; });
  until_ended(open(call(3)));
  desk_.end_following();
  EXPECT_TRUE(heard.empty());
  EXPECT_EQ(n_ends, 10);
}

}  // namespace
}  // namespace fermata::api
