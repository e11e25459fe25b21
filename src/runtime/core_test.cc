// The engine with its thread, called from several others.
#include "runtime/core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
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

// What a run of these tokens would say from here on.
Heard alone(const Request& of, std::span<const TokenId> tokens) {
  const SystemClock clock;
  Core core(engine(), clock);
  Request with_pause = of;
  with_pause.pause_at = 0;
  const Started started = *core.submit(with_pause);
  EXPECT_TRUE(await(core.pause(started.id)).has_value());
  const Anchor anchor = *await(core.anchor(started.id));
  Splice all{anchor.journal.size(), anchor.journal.size(), {}, TokenRole::kGenerated, Origin::kEdited};
  for (const TokenId token : tokens.subspan(of.prompt.size())) all.tokens.push_back(token);
  EXPECT_TRUE(await(core.revise(started.id, *core.prepare_revision(anchor, {&all, 1}))).has_value());
  EXPECT_TRUE(await(core.resume(started.id)).has_value());
  return hear(started);
}

TEST_F(CoreTest, AnEditKeepsWhatStandsBeforeItAndGoesOnAsIfItHadAlwaysBeenSo) {
  Core core(engine(), clock_);
  Request of = request(3, 40);
  of.pause_at = 20;
  const Started started = *core.submit(of);
  Heard heard;
  while (heard.states.empty() || heard.states.back().state != State::kPaused)
    if (const auto event = started.events->pop(seconds(1))) heard.take(*event);
  const Anchor anchor = *await(core.anchor(started.id));
  const std::uint64_t n_before = core.stats().n_prefill_rows + core.stats().n_decode_rows;
  const Splice splice{13, 15, {TokenId{4}}, TokenRole::kGenerated, Origin::kEdited};
  const auto revised = await(core.revise(started.id, *core.prepare_revision(anchor, {&splice, 1})));
  ASSERT_TRUE(revised.has_value()) << revised.error().message;
  EXPECT_EQ(revised->first_changed, 13);
  EXPECT_EQ(revised->version, 2u);
  EXPECT_EQ(revised->pause.at, 22);
  EXPECT_EQ(revised->pause.computed, 13);
  const auto seen = await(core.inspect(started.id, 0, 5));
  ASSERT_TRUE(seen.has_value());
  EXPECT_TRUE(seen->has_logits) << "looking computes what the edit left";
  EXPECT_EQ(core.stats().n_prefill_rows + core.stats().n_decode_rows - n_before, 22u - 13u);
  EXPECT_EQ(await(core.revise(started.id, *core.prepare_revision(anchor, {}))).error().code, Code::kStale);
  ASSERT_TRUE(await(core.resume(started.id)).has_value());
  while (!started.events->closed_and_empty())
    if (const auto event = started.events->pop(seconds(1))) heard.take(*event);

  std::vector<TokenId> edited(anchor.journal.tokens().begin(), anchor.journal.tokens().end());
  edited.erase(edited.begin() + 13, edited.begin() + 15);
  edited.insert(edited.begin() + 13, TokenId{4});
  const Heard expected = alone(request(3, 40), edited);
  EXPECT_EQ(heard.text, expected.text);
  EXPECT_EQ(heard.tokens(), expected.tokens());
}

TEST_F(CoreTest, ABranchSharesWhatWasComputedAndLeavesItsParentAlone) {
  Core core(engine(), clock_);
  Request of = request(2, 40);
  of.pause_at = 20;
  const Started parent = *core.submit(of);
  Heard parent_heard;
  while (parent_heard.states.empty() || parent_heard.states.back().state != State::kPaused)
    if (const auto event = parent.events->pop(seconds(1))) parent_heard.take(*event);
  const Anchor anchor = *await(core.anchor(parent.id));
  Request other = *anchor.request;
  other.sampling.seed = 99;
  const std::uint64_t n_before = core.stats().n_prefill_rows + core.stats().n_decode_rows;
  const std::uint64_t n_shared_before = core.stats().n_cached_rows;
  const Started same = *core.start(core.branch(*core.prepare_revision(anchor, {})));
  const Started another = *core.start(core.branch(*core.prepare_revision(anchor, {}, &other)), {}, true);
  const Heard same_heard = hear(same);
  EXPECT_EQ(core.stats().n_prefill_rows + core.stats().n_decode_rows - n_before, 19u) << "its own tokens but the last";
  EXPECT_EQ(core.stats().n_cached_rows - n_shared_before, 23u) << "all of the anchor, its last token too";
  EXPECT_EQ(await(core.status(another.id))->state, State::kPaused) << "it was started paused";
  ASSERT_TRUE(await(core.resume(another.id)).has_value());
  ASSERT_TRUE(await(core.resume(parent.id)).has_value());
  const Heard another_heard = hear(another);
  while (!parent.events->closed_and_empty())
    if (const auto event = parent.events->pop(seconds(1))) parent_heard.take(*event);
  EXPECT_EQ(same_heard.tokens(), parent_heard.tokens()) << "the same randomness";
  EXPECT_EQ(same_heard.text, parent_heard.text);
  EXPECT_NE(another_heard.tokens(), parent_heard.tokens());
  EXPECT_TRUE(std::equal(parent_heard.rows.begin(), parent_heard.rows.begin() + 20, another_heard.rows.begin(),
                         [](const JournalRow& a, const JournalRow& b) { return a.token == b.token; }));
}

TEST_F(CoreTest, OnlyAPausedOneHasAnAnchor) {
  Core core(engine(), clock_);
  EXPECT_EQ(await(core.anchor(GenerationId{77})).error().code, Code::kNotFound);
  const Started started = *core.submit(request(1, 5));
  (void)hear(started);
  EXPECT_EQ(await(core.anchor(started.id)).error().code, Code::kWrongState);
}

}  // namespace
}  // namespace fermata
