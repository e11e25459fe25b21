#include "api/http/signal.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <vector>

namespace fermata::api {
namespace {

struct World {
  void wait(Duration at_most) {
    const auto waits = [](Signal& waited, std::vector<int>& results, Duration limit) -> boost::asio::awaitable<void> {
      results.push_back(co_await waited.wait(limit));
    };
    boost::asio::co_spawn(io, waits(*signal, woken, at_most), boost::asio::detached);
  }
  boost::asio::io_context io;
  std::unique_ptr<Signal> signal = std::make_unique<Signal>(io.get_executor());
  std::vector<int> woken;
};

TEST(Signal, WakesAllWhoWait) {
  World world;
  for (int i = 0; i < 3; ++i) world.wait(Signal::kForever);
  world.io.poll();
  EXPECT_EQ(world.signal->n_waiting(), 3u);
  world.signal->notify();
  EXPECT_TRUE(world.woken.empty());  // not from within notify
  world.io.run();
  EXPECT_EQ(world.woken, (std::vector<int>{1, 1, 1}));
  EXPECT_EQ(world.signal->n_waiting(), 0u);
}

TEST(Signal, IsNotRemembered) {
  World world;
  world.signal->notify();
  world.wait(milliseconds(0));
  world.io.run();
  EXPECT_EQ(world.woken, std::vector<int>{0});
  EXPECT_EQ(world.signal->n_waiting(), 0u);
}

TEST(Signal, ANotifyAfterTheTimeButBeforeTheTurnCounts) {
  World world;
  world.wait(milliseconds(0));
  world.io.run_one();  // it waits now, and its time is over
  world.signal->notify();
  world.io.run();
  EXPECT_EQ(world.woken, std::vector<int>{1});
}

TEST(Signal, MayDieBeforeThoseWhoWait) {
  World world;
  world.wait(Signal::kForever);
  world.io.poll();
  world.signal.reset();
  world.io.restart();
  world.io.run();
  EXPECT_EQ(world.woken, std::vector<int>{0});
}

TEST(Signal, MayOutliveThoseWhoWait) {
  auto io = std::make_unique<boost::asio::io_context>();
  Signal signal(io->get_executor());
  const auto waits = [](Signal& waited) -> boost::asio::awaitable<void> { co_await waited.wait(Signal::kForever); };
  boost::asio::co_spawn(*io, waits(signal), boost::asio::detached);
  io->poll();
  EXPECT_EQ(signal.n_waiting(), 1u);
  io.reset();
  EXPECT_EQ(signal.n_waiting(), 0u);
}

}  // namespace
}  // namespace fermata::api
