#include "api/send_answer.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <optional>
#include <utility>

#include "base/limits.h"
#include "engine/fake/fake_engine.h"

namespace fermata::api {
namespace {

namespace asio = boost::asio;

// Keeps the answer; its client stays.
class KeptExchange final : public Exchange {
 public:
  explicit KeptExchange(asio::any_io_executor executor) : executor_(std::move(executor)) {}
  asio::any_io_executor executor() override { return executor_; }
  asio::awaitable<void> respond(HttpResponse given) override {
    response = std::move(given);
    co_return;
  }
  asio::awaitable<bool> begin_stream(HttpResponse) override { co_return true; }
  asio::awaitable<bool> write(std::string_view) override { co_return true; }
  asio::awaitable<void> end_stream() override { co_return; }
  void note_end(std::string_view given, Ending how) override {
    end = given;
    ending = how;
  }
  bool is_gone() const override { return false; }
  void on_gone(std::function<void()>) override {}

  std::optional<HttpResponse> response;
  std::string end;
  std::optional<Ending> ending;

 private:
  asio::any_io_executor executor_;
};

// A whole answer is waited for; the test says what the generation does, and when.
class SendWholeTest : public ::testing::Test {
 protected:
  SendWholeTest() {
    desk_.serve(core_, nullptr, "fake", "");
    dossier_->head.generation_id = "gen_1";
    dossier_->options.on_disconnect = OnDisconnect::kContinue;
    asio::co_spawn(io_, send_whole(desk_, dossier_, 0, exchange_), asio::detached);
    goes_on();
  }
  ~SendWholeTest() override {
    if (!exchange_.response) ends();
  }

  void says(decltype(Event::content) what) {
    dossier_->recording.take({n_events_++, clock_.now(), std::move(what)});
    look();
  }
  void is_paused(WaitReason reason) {
    PauseRecord record;
    record.reason = reason;
    says(StateEvent{State::kPaused, reason, record});
  }
  void goes_on() { says(StateEvent{State::kRunning, WaitReason::kNone, {}}); }
  void ends(EndReason reason = EndReason::kLength) { says(FinishEvent{reason, {}, 1, 0, 1, ""}); }
  void passes(Duration duration) {
    clock_.advance(duration);
    look();
  }
  // News, or the end of its wait: both make it look again.
  void look() {
    dossier_->changed.notify();
    io_.poll();
  }

  static constexpr Duration kWait = milliseconds(limits::kPauseWaitMs);
  static constexpr Duration kMost{kWait.ns * 6 / 10};  // two are more than it

  ManualClock clock_;
  asio::io_context io_;
  Core core_{std::make_unique<FakeEngine>(), clock_};
  Desk desk_{io_.get_executor(), clock_, {}};
  std::shared_ptr<Dossier> dossier_ = std::make_shared<Dossier>(io_.get_executor());
  KeptExchange exchange_{io_.get_executor()};
  std::uint64_t n_events_ = 0;
};

TEST_F(SendWholeTest, EachPauseIsWaitedForAnew) {
  for (int i = 0; i < 3; ++i) {
    is_paused(WaitReason::kUser);
    passes(kMost);
    ASSERT_FALSE(exchange_.response) << "in pause " << i;
    goes_on();
  }
  ends();
  ASSERT_TRUE(exchange_.response) << "a resume in time is no error";
  EXPECT_EQ(exchange_.response->status, 200);
  EXPECT_EQ(exchange_.end, "length");
}

TEST_F(SendWholeTest, APauseThatLastsIsToldWhenItsTimeIsOver) {
  passes(seconds(3600));  // running: as long as it takes
  is_paused(WaitReason::kUser);
  passes(kMost);
  ASSERT_FALSE(exchange_.response);
  passes({kWait.ns - kMost.ns});
  ASSERT_TRUE(exchange_.response);
  EXPECT_EQ(exchange_.response->status, 409);
  EXPECT_NE(exchange_.response->body.find("generation_paused"), std::string::npos);
  EXPECT_NE(exchange_.response->body.find(dossier_->recording.tickets()[0].id), std::string::npos);
  EXPECT_EQ(exchange_.end, "") << "it goes on";
}

TEST_F(SendWholeTest, ACancelIsAnErrorToItsReaderAndNoneToTheLog) {
  ends(EndReason::kCancelled);
  ASSERT_TRUE(exchange_.response);
  EXPECT_GE(exchange_.response->status, 400);
  EXPECT_EQ(exchange_.end, "cancelled");
  EXPECT_EQ(exchange_.ending, Ending::kWell);
}

TEST_F(SendWholeTest, ATimeLimitIsOfItsClientAndNoFaultOfOurs) {
  ends(EndReason::kTimeout);
  EXPECT_EQ(exchange_.end, "timeout");
  EXPECT_EQ(exchange_.ending, Ending::kRefused);
}

TEST_F(SendWholeTest, WhatNobodyHasToResumeIsWaitedForWithoutEnd) {
  for (const WaitReason reason : {WaitReason::kPreempted, WaitReason::kSlowReader}) {
    is_paused(reason);
    passes(seconds(3600));
    ASSERT_FALSE(exchange_.response);
    goes_on();
  }
}

}  // namespace
}  // namespace fermata::api
