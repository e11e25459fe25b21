// The engine with its thread, called from several others.
#include "runtime/core.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/limits.h"
#include "engine/fake/fake_engine.h"
#include "runtime/heard.h"

namespace fermata {
namespace {

using test::Heard;

std::unique_ptr<FakeEngine> engine(std::int32_t n_cells = 512) {
  FakeOptions options;
  options.n_cells = n_cells;
  options.n_seqs = 8;
  return std::make_unique<FakeEngine>(options);
}

Request request(std::int32_t n, std::int32_t n_tokens = 60) {
  Request made;
  made.prompt = {TokenId{1}, TokenId{n % 5}, TokenId{7}};
  made.n_tokens_max = n_tokens;
  made.sampling.seed = static_cast<std::uint64_t>(n);
  made.sampling.ignore_eos = true;
  return made;
}

Heard hear(const Started& started) {
  Heard heard;
  while (!started.events->closed_and_empty())
    if (const auto event = started.events->pop(seconds(1))) heard.take(*event);
  return heard;
}

class CoreTest : public ::testing::Test {
 protected:
  SystemClock clock_;
};

TEST_F(CoreTest, InterruptsFromManyThreadsChangeNoToken) {
  constexpr int kThreads = 4;
  constexpr int kEach = 8;
  std::vector<Heard> expected;
  {
    Core alone(engine(), clock_);
    for (int n = 0; n < kThreads * kEach; ++n) expected.push_back(hear(*alone.submit(request(n))));
  }
  Core core(engine(120), clock_);  // too small for all at once
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        const int n = t * kEach + i;
        const Started started = *core.submit(request(n));
        bool over = false;
        for (int round = 0; round < 6 && !over; ++round) {
          const auto record = await(core.pause(started.id));
          over = !record;
          (void)await(core.inspect(started.id, 4, 4));
          const auto status = await(core.status(started.id));
          if (record && status && status->state == State::kPaused) {
            EXPECT_EQ(status->n_prompt + status->n_generated, record->at);
          }
          const auto resumed = await(core.resume(started.id));
          EXPECT_EQ(resumed.has_value(), record.has_value());
        }
        const Heard heard = hear(started);
        EXPECT_EQ(heard.text, expected[static_cast<std::size_t>(n)].text);
        EXPECT_EQ(heard.tokens(), expected[static_cast<std::size_t>(n)].tokens());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(CoreTest, CancelFromAnotherThreadEndsIt) {
  Core core(engine(), clock_);
  for (int n = 0; n < 20; ++n) {
    const Started started = *core.submit(request(n, 400));
    std::thread other([&] { EXPECT_TRUE(await(core.cancel(started.id)).has_value()); });
    const Heard heard = hear(started);
    other.join();
    ASSERT_EQ(heard.ends.size(), 1u);
    const auto again = await(core.cancel(started.id));
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(again->end_reason, heard.ends[0].reason);
  }
}

TEST_F(CoreTest, StopWhileBusyEndsEverybodyAndSaysSo) {
  std::vector<Started> all;
  std::vector<Reply<PauseRecord>> pauses;
  {
    Core core(engine(), clock_);
    for (int n = 0; n < 20; ++n) all.push_back(*core.submit(request(n, 500)));
    for (int n = 0; n < 5; ++n) pauses.push_back(core.pause(all[static_cast<std::size_t>(n)].id));
  }
  for (const Started& started : all) {
    const Heard heard = hear(started);
    ASSERT_EQ(heard.ends.size(), 1u);
    EXPECT_TRUE(heard.ends[0].reason == EndReason::kShutdown || heard.ends[0].reason == EndReason::kLength);
  }
  for (const auto& pause : pauses) EXPECT_TRUE(pause.poll().has_value()) << "every call is answered";
}

TEST_F(CoreTest, AReaderTooSlowToHearTheEndIsNotLeftWaiting) {
  std::optional<Started> started;
  {
    Core core(engine(4096), clock_);
    started = *core.submit(request(1, 2000));  // more events than a ring holds
    while (started->events->n_free() >= limits::kEventsPerTokenMax) std::this_thread::yield();
    for (int i = 0; i < 3; ++i) {  // says more than there is room for
      EXPECT_TRUE(await(core.pause(started->id)).has_value());
      EXPECT_TRUE(await(core.resume(started->id)).has_value());
    }
  }
  std::size_t n_events = 0;
  while (started->events->try_pop()) ++n_events;
  EXPECT_GT(n_events, limits::kEventRingMax / 2);
  EXPECT_TRUE(started->events->closed_and_empty());
}

TEST_F(CoreTest, ALaggingReaderHearsAll) {
  Core core(engine(4096), clock_);
  const Started started = *core.submit(request(1, 2000));
  while (started.events->n_free() >= limits::kEventsPerTokenMax) std::this_thread::yield();
  const Heard heard = hear(started);
  EXPECT_EQ(heard.rows.size(), 2000u);
}

TEST_F(CoreTest, BadInputIsRefusedBeforeTheEngineHearsOfIt) {
  Core core(engine(16), clock_);
  const auto refused = core.submit(request(1, 1000));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::kContextLength);
  EXPECT_EQ(core.stats().n_steps.load(), 0u);
}

TEST_F(CoreTest, CallsAboutNobodyAreAnswered) {
  Core core(engine(), clock_);
  const GenerationId nobody{77};
  EXPECT_EQ(await(core.pause(nobody)).error().code, Code::kNotFound);
  EXPECT_EQ(await(core.resume(nobody)).error().code, Code::kNotFound);
  EXPECT_EQ(await(core.cancel(nobody)).error().code, Code::kNotFound);
  EXPECT_EQ(await(core.inspect(nobody, 1, 1)).error().code, Code::kNotFound);
  EXPECT_EQ(await(core.status(nobody)).error().code, Code::kNotFound);
}

TEST_F(CoreTest, AnEndedOneIsToldOfAsEnded) {
  Core core(engine(), clock_);
  const Started started = *core.submit(request(1, 3));
  (void)hear(started);
  EXPECT_EQ(await(core.status(started.id))->end_reason, EndReason::kLength);
  EXPECT_EQ(await(core.pause(started.id)).error().code, Code::kWrongState);
  EXPECT_EQ(await(core.resume(started.id)).error().code, Code::kWrongState);
  EXPECT_EQ(await(core.inspect(started.id, 1, 1)).error().code, Code::kWrongState);
}

}  // namespace
}  // namespace fermata
