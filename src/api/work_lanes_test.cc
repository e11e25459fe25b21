#include "api/work_lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <latch>
#include <new>
#include <string>

#include "base/limits.h"

namespace fermata::api {
namespace {

namespace asio = boost::asio;
constexpr std::size_t kLong = limits::kLongJobBytes + 1;

using Queue = std::vector<WorkLanes::Waiting>;

TEST(WorkLanes, TheShortestIsNextAndAmongEqualsTheOldest) {
  EXPECT_EQ(WorkLanes::next_of(Queue{}, 0, 2), std::nullopt);
  EXPECT_EQ(WorkLanes::next_of(Queue{{30}, {10}, {20}, {10}}, 0, 2), 1u);
}

TEST(WorkLanes, WhoWasPassedOverOftenIsNext) {
  EXPECT_EQ(WorkLanes::next_of(Queue{{30, limits::kJobPassedMax - 1}, {10}}, 0, 2), 1u);
  EXPECT_EQ(WorkLanes::next_of(Queue{{30, limits::kJobPassedMax}, {10}}, 0, 2), 0u);
}

TEST(WorkLanes, LongOnesNeverHaveAllThreads) {
  EXPECT_EQ(WorkLanes::next_of(Queue{{kLong, limits::kJobPassedMax}, {10}}, 1, 2), 1u);
  EXPECT_EQ(WorkLanes::next_of(Queue{{kLong}}, 1, 2), std::nullopt);
  EXPECT_EQ(WorkLanes::next_of(Queue{{kLong}}, 1, 3), 0u);
  EXPECT_EQ(WorkLanes::next_of(Queue{{kLong}}, 0, 1), 0u) << "one thread is for all";
}

// Jobs that say in which order they ran. The io thread is the test's.
class Running : public testing::Test {
 protected:
  ~Running() override {
    open();
    for (int i = 0; i < 100'000 && n_ended_ < n_asked_; ++i) io_.run_one_for(std::chrono::milliseconds(1));
    EXPECT_EQ(n_ended_, n_asked_);
    lanes_.join();
  }
  void open() {
    if (!open_.try_wait()) open_.count_down();
  }
  // A job that waits until the test opens the door, so that what comes later has to queue.
  void block(std::size_t n_bytes) {
    ask(n_bytes, "", {}, [this] { open_.wait(); });
  }
  void ask(
      std::size_t n_bytes, const std::string& name, std::shared_ptr<Leaver> leaver = {},
      std::function<void()> work = [] {}) {
    ++n_asked_;
    asio::co_spawn(io_, run(n_bytes, name, std::move(leaver), std::move(work)), asio::detached);
    io_.poll();
  }
  asio::awaitable<void> run(std::size_t n_bytes, std::string name, std::shared_ptr<Leaver> leaver,
                            std::function<void()> work) {
    const auto said = [&] {
      work();
      return name;
    };
    const Result<std::string> done = co_await lanes_.run(n_bytes, std::move(leaver), said);
    order_ += done ? *done : done.error().code == Code::kAborted ? "-" : "!";
    ++n_ended_;
  }
  std::string order_once_open(std::size_t n) {
    open();
    for (int i = 0; i < 100'000 && n_ended_ < n; ++i) io_.run_one_for(std::chrono::milliseconds(1));
    return order_;
  }

  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> works_{io_.get_executor()};
  WorkLanes lanes_{io_.get_executor(), 2};
  std::latch open_{1};
  std::string order_;
  std::size_t n_asked_ = 0;
  std::size_t n_ended_ = 0;
};

TEST_F(Running, ShortTextsGoOnBesideManyLongOnes) {
  block(kLong);
  for (int i = 0; i < 100; ++i) ask(kLong, "L");
  for (int i = 0; i < 20; ++i) ask(10, "s");
  for (int i = 0; i < 100'000 && n_ended_ < 20; ++i) io_.run_one_for(std::chrono::milliseconds(1));
  EXPECT_EQ(order_, std::string(20, 's')) << "the long one that runs was not even waited for";
  EXPECT_EQ(lanes_.n_waiting(), 100u);
}

TEST_F(Running, WhoLeavesGivesUpItsPlace) {
  block(1);
  block(1);
  const auto leaver = std::make_shared<Leaver>();
  ask(1, "a", leaver);
  ask(1, "b");
  EXPECT_EQ(lanes_.n_waiting(), 2u);
  leaver->leave();
  io_.poll();
  EXPECT_EQ(order_, "-") << "told at once, and not run";
  EXPECT_EQ(lanes_.n_waiting(), 1u);
  const auto gone = std::make_shared<Leaver>();
  gone->leave();
  ask(1, "c", gone);
  EXPECT_EQ(order_, "--");
  EXPECT_EQ(order_once_open(5).find_first_of("ac"), std::string::npos) << order_;
}

TEST_F(Running, WhoLeavesAsItsThreadIsFreeIsNotServedEither) {
  block(1);
  block(1);
  const auto leaver = std::make_shared<Leaver>();
  bool ran = false;
  ask(1, "a", leaver, [&] { ran = true; });
  open();
  while (lanes_.n_waiting() > 0) io_.run_one();  // it has its thread, but its coroutine was not woken yet
  leaver->leave();
  EXPECT_EQ(order_once_open(3), "-");
  EXPECT_FALSE(ran);
}

TEST_F(Running, WhatIsThrownIsAnErrorAndTheThreadIsFreeAgain) {
  for (int i = 0; i < 4; ++i) ask(1, "", {}, [] { throw std::bad_alloc(); });
  ask(1, "a");
  EXPECT_EQ(order_once_open(5).size(), 5u) << order_;
  EXPECT_EQ(std::count(order_.begin(), order_.end(), '!'), 4) << order_;
  EXPECT_EQ(lanes_.n_waiting(), 0u);
}

TEST_F(Running, ALongerOneIsNotPassedOverForEver) {
  block(1);
  block(1);
  ask(1000, "M");
  for (std::size_t i = 0; i < 3 * limits::kJobPassedMax; ++i) ask(1, "s");
  const std::string order = order_once_open(3 + 3 * limits::kJobPassedMax);
  const std::size_t at = order.find('M');
  ASSERT_NE(at, std::string::npos);
  EXPECT_GE(at, limits::kJobPassedMax - 2) << "two run at once, and the order in which they end is theirs";
  EXPECT_LE(at, limits::kJobPassedMax + 2);
}

}  // namespace
}  // namespace fermata::api
