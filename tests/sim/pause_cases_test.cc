// What other servers got wrong, at the level of the engine loop: text that is held back, calls that arrive together,
// readers that are slow.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "cases.h"

namespace fermata {
namespace {

using namespace test;
using Client = LoopBench::Client;

// ----------------------------------------------------------------------------------------------- E2: text that is held

class HeldText : public ::testing::Test {
 protected:
  // A machine that says `text` (one token per byte) to the prompt [65], then ends.
  FakeOptions says(const std::string& text) {
    const auto vocabulary = std::make_shared<const FakeVocabulary>();
    FakeScript script{{TokenId{65}}, {}};
    for (const char byte : text) script.completion.push_back(vocabulary->byte(static_cast<unsigned char>(byte)));
    FakeOptions options = roomy();
    options.model = script_model(vocabulary, {script}, hash_model(vocabulary));
    return options;
  }
  Request with_stops(std::vector<std::string> stops, std::int32_t n_tokens = 40) {
    Request request = greedy({TokenId{65}}, n_tokens);
    request.stop = std::move(stops);
    return request;
  }
  // Its whole text, paused (and resumed) after each of its tokens; at the pauses only `shown` may be out.
  std::string paused_everywhere(const std::string& text, const Request& request, const std::string& never) {
    LoopBench bench(says(text));
    Client client = bench.submit(request);
    for (int n = 0; n < 200 && client.heard.ends.empty(); ++n) {
      bench.turn();
      bench.read(client);
      const auto record = bench.pause(client.id);
      bench.turn();
      bench.read(client);
      if (client.heard.ends.empty()) {
        EXPECT_EQ((*record.poll())->n_bytes_sent, client.heard.text.size());
        EXPECT_EQ(client.heard.text.find(never), std::string::npos);
      }
      (void)bench.resume(client.id);
    }
    EXPECT_EQ(client.heard.ends.size(), 1u);
    return client.heard.text;
  }
};

TEST_F(HeldText, PauseInTheMiddleOfAStopStringThatThenCompletes) {
  EXPECT_EQ(paused_everywhere("Hello\nUser: I", with_stops({"\nUser:"}), "\n"), "Hello");
}

TEST_F(HeldText, PauseInTheMiddleOfAStopStringThatThenDoesNot) {
  EXPECT_EQ(paused_everywhere("Hello\nUsual", with_stops({"\nUser:"}), "~"), "Hello\nUsual");
}

TEST_F(HeldText, OverlappingStopStrings) {
  EXPECT_EQ(paused_everywhere("He\nUser: x", with_stops({"\nUser:", "User"}), "\n"), "He\n")
      << "the one that is complete first ends it";
  EXPECT_EQ(paused_everywhere("Hello\nUser: x", with_stops({"\n", "\nUser:", "User"}), "\n"), "Hello");
}

TEST_F(HeldText, HalfAStopStringComesOutOnceAtATrueEnd) {
  const std::string text = "Hello\nUs";
  {
    LoopBench bench(says(text));
    Client at_eog = bench.submit(with_stops({"\nUser:"}));
    bench.run(at_eog);
    EXPECT_EQ(at_eog.heard.text, text);
    EXPECT_EQ(at_eog.heard.ends.at(0).reason, EndReason::kStop);
  }
  {
    LoopBench bench(says(text + "er: x"));
    Client at_limit = bench.submit(with_stops({"\nUser:"}, 8));
    bench.run(at_limit);
    EXPECT_EQ(at_limit.heard.text, text);
    EXPECT_EQ(at_limit.heard.ends.at(0).reason, EndReason::kLength);
  }
  for (const bool paused : {false, true}) {
    Request request = with_stops({"\nUser:"});
    request.pause_at = 8;
    LoopBench bench(says(text + "er: x"));
    Client client = bench.submit(request);
    bench.run(client);
    EXPECT_EQ(client.heard.text, "Hello");
    EXPECT_EQ(client.heard.states.back().pause.n_bytes_held, 3u);
    if (!paused) (void)bench.resume(client.id);
    (void)bench.cancel(client.id);
    bench.turn();
    bench.read(client);
    EXPECT_EQ(client.heard.text, text);
    EXPECT_EQ(client.heard.ends.at(0).reason, EndReason::kCancelled);
  }
}

TEST_F(HeldText, AContentFilterReleasesNothing) {
  Request request = with_stops({"\nUser:"});
  request.pause_at = 8;
  LoopBench bench(says("Hello\nUser: x"));
  Client client = bench.submit(request);
  bench.run(client);
  (void)bench.cancel(client.id, EndReason::kContentFilter);
  bench.turn();
  bench.read(client);
  EXPECT_EQ(client.heard.text, "Hello");
}

// What could come next tells of text that is held. Who decides whether to show it cannot ask afterwards: it may go on
// by then, or be paused by nobody.
TEST_F(HeldText, AnInspectionSaysHowMuchIsHeldThoughAResumeIsBehindIt) {
  Request request = with_stops({"\nUser:"});
  request.pause_at = 8;
  LoopBench bench(says("Hello\nUser: x"));
  Client client = bench.submit(request);
  bench.run(client);
  const auto seen = bench.inspect(client.id);
  const auto resumed = bench.resume(client.id);
  bench.turn();
  const auto inspection = seen.poll();
  ASSERT_TRUE(inspection && *inspection && resumed.poll());
  EXPECT_EQ((*inspection)->n_bytes_held, 3u);
  EXPECT_TRUE((*inspection)->has_logits);
}

TEST_F(HeldText, AnInspectionOfAPreemptedOneSaysHowMuchIsHeld) {
  FakeOptions options = says("Hello\nUser: and so");
  options.n_cells = 24;  // both grow until one has to give way
  LoopBench bench(options);
  Client client = bench.submit(with_stops({"\nUser: and so on"}, 20));
  Request urgent = greedy({TokenId{3}}, 20);
  urgent.sampling.ignore_eos = true;
  urgent.priority = 1;
  Client other = bench.submit(urgent);
  for (auto state = State::kQueued; state != State::kPaused;) {
    const auto status = bench.status(client.id);
    bench.turn();
    bench.read(other);
    ASSERT_TRUE(other.heard.ends.empty());
    state = (*status.poll())->state;
  }
  const auto seen = bench.inspect(client.id);
  bench.turn();
  const auto inspection = seen.poll();
  ASSERT_TRUE(inspection && *inspection);
  EXPECT_EQ((*inspection)->status.wait_reason, WaitReason::kPreempted);
  EXPECT_EQ((*inspection)->n_bytes_held, static_cast<std::size_t>((*inspection)->status.n_generated) - 5);
}

TEST_F(HeldText, WhoAsksForNoTokenIsToldThatThereAreLogits) {
  LoopBench bench(says("Hello"));
  Request request = with_stops({});
  request.pause_at = 2;
  Client client = bench.submit(request);
  bench.run(client);
  const auto seen = bench.inspect(client.id, 0);
  bench.turn();
  const auto inspection = seen.poll();
  ASSERT_TRUE(inspection && *inspection);
  EXPECT_TRUE((*inspection)->next.empty() && (*inspection)->has_logits);
}

// ------------------------------------------------------------------------------------------ calls that arrive together

// Two that decode together, so that a pause finds its rows in a step that is not aborted.
struct Pair {
  LoopBench bench{roomy(), small_chunks()};
  Client a = bench.submit(greedy({TokenId{1}, TokenId{2}}, 100));
  Client b = bench.submit(greedy({TokenId{3}, TokenId{4}}, 100));
  Pair() { bench.turns(6); }
  void in_next_step(std::function<void()> calls) {
    bench.in_step = [calls = std::move(calls), done = false]() mutable {
      if (!std::exchange(done, true)) calls();
    };
    bench.turn();
  }
};

TEST(CallsTogether, TheLastOfPauseResumePauseHolds) {
  Pair pair;
  std::vector<Reply<PauseRecord>> pauses;
  std::optional<Reply<Status>> resumed;
  pair.in_next_step([&] {
    pauses.push_back(pair.bench.pause(pair.a.id));
    resumed = pair.bench.resume(pair.a.id);
    pauses.push_back(pair.bench.pause(pair.a.id));
  });
  EXPECT_TRUE(pauses[0].poll() && resumed->poll() && pauses[1].poll());
  const auto status = pair.bench.status(pair.a.id);
  pair.bench.turn();
  EXPECT_EQ((*status.poll())->state, State::kPaused);
}

TEST(CallsTogether, WhatAnAnswerTellsWasSaidBefore) {
  // Whoever has the answer to a pause or a resume and then reads the events finds the state that it tells of.
  Pair pair;
  const auto paused = pair.bench.pause(pair.a.id);
  const auto told = [&] {
    pair.bench.read(pair.a);
    return pair.a.heard.states.back().state;
  };
  pair.in_next_step([&] { EXPECT_TRUE(!paused.poll() || told() == State::kPaused); });
  EXPECT_EQ(told(), State::kPaused);
  const auto resumed = pair.bench.resume(pair.a.id);
  pair.in_next_step([&] {
    EXPECT_TRUE(resumed.poll().has_value());
    EXPECT_EQ(told(), State::kRunning) << "the resume was answered, and nothing said of it";
  });
}

TEST(CallsTogether, AnInspectionSeesTheFrozenPointThoughAResumeIsBehindIt) {
  // Paused with its row uncomputed, so that the inspection takes a step.
  Pair pair;
  (void)pair.bench.pause(pair.a.id);
  const auto seen = pair.bench.inspect(pair.a.id);
  const auto resumed = pair.bench.resume(pair.a.id);
  const auto status = pair.bench.status(pair.a.id);
  pair.bench.turn();
  const auto inspection = seen.poll();
  ASSERT_TRUE(inspection && *inspection);
  EXPECT_EQ((*inspection)->status.state, State::kPaused);
  EXPECT_EQ((*inspection)->next.size(), 8u);
  ASSERT_TRUE(resumed.poll().has_value());
  EXPECT_EQ((*status.poll())->state, State::kRunning);
  pair.bench.run(pair.a);
  EXPECT_EQ(pair.a.heard.tokens(), undisturbed(greedy({TokenId{1}, TokenId{2}}, 100)).tokens());
}

TEST(CallsTogether, AnInspectionThatComesWithinTheStepOfAnotherSeesTheSameRow) {
  Pair pair;
  (void)pair.bench.pause(pair.a.id);
  const auto first = pair.bench.inspect(pair.a.id);
  std::optional<Reply<Inspection>> second;
  pair.in_next_step([&] { second = pair.bench.inspect(pair.a.id); });
  const auto seen = first.poll();
  const auto seen_too = second->poll();
  ASSERT_TRUE(seen && *seen && seen_too && *seen_too);
  EXPECT_EQ((*seen)->next.size(), 8u);
  EXPECT_EQ((*seen_too)->next, (*seen)->next);
}

TEST(CallsTogether, PauseInASharedStepKeepsTheRowItMade) {
  Pair pair;
  std::optional<Reply<PauseRecord>> pause;
  pair.in_next_step([&] { pause = pair.bench.pause(pair.a.id); });
  const auto record = pause->poll();
  ASSERT_TRUE(record && *record);
  EXPECT_TRUE((*record)->has_logits);
  EXPECT_EQ((*record)->computed, (*record)->at);
  EXPECT_EQ(pair.bench.engine().n_aborted(), 0u);
}

TEST(CallsTogether, WhoEndsAStepDoesNotWaitForTheNeighboursPrefill) {
  LoopBench bench(roomy(), small_chunks());
  Client stream = bench.submit(greedy({TokenId{1}, TokenId{2}}, 100));
  bench.turns(4);
  Client filling = bench.submit(greedy(long_prompt(1), 4));
  bench.turns(2);
  std::optional<Reply<PauseRecord>> pause;
  bool reached_before_prefill = false;
  int n_steps = 0;
  bench.in_step = [&] {
    if (n_steps == 0) pause = bench.pause(stream.id);
    if (n_steps == 1) reached_before_prefill = pause->poll().has_value();
    ++n_steps;
  };
  bench.turn();
  EXPECT_EQ(n_steps, 2);
  EXPECT_TRUE(reached_before_prefill);
}

TEST(CallsTogether, AnInspectedPausedOneNeverStartsByItself) {
  // The pool is full, and the row that an inspection wants has no cell: it is answered without, and stays paused.
  FakeOptions options = roomy();
  options.n_cells = 12;
  LoopBench bench(options);
  Request going_on = greedy({TokenId{1}, TokenId{2}}, 10);
  going_on.sampling.ignore_eos = true;
  Client senior = bench.submit(going_on);
  Client paused = bench.submit(greedy({TokenId{3}, TokenId{4}, TokenId{5}}, 9));
  bench.turns(4);
  (void)bench.pause(paused.id);
  bench.turn();
  while (bench.engine().ledger().n_free() > 1) bench.turn();
  const auto seen = bench.inspect(paused.id);
  bench.turn();
  const auto inspection = seen.poll();
  ASSERT_TRUE(inspection && *inspection);
  EXPECT_EQ((*inspection)->status.state, State::kPaused);
  EXPECT_TRUE((*inspection)->next.empty());
  bench.run(senior);
  EXPECT_EQ(senior.heard.ends.at(0).n_generated, 10);
  const auto status = bench.status(paused.id);
  bench.turns(5);
  EXPECT_EQ((*status.poll())->state, State::kPaused);
  EXPECT_EQ(bench.loop().roster().size(), 1u);
}

// ------------------------------------------------------------------------------------------------------- slow readers

TEST(SlowReader, GivesWayToOneThatReads) {
  FakeOptions options = roomy();
  options.n_cells = 22;
  LoopBench bench(options);
  Request endless = greedy({TokenId{1}, TokenId{2}}, 20);
  endless.sampling.ignore_eos = true;
  Client slow = bench.submit(endless, 6);
  bench.turns(10);
  Request next = greedy({TokenId{3}, TokenId{4}}, 20);
  next.sampling.ignore_eos = true;
  Client reading = bench.submit(next);
  bench.run(reading);
  ASSERT_EQ(reading.heard.ends.size(), 1u);
  EXPECT_EQ(reading.heard.ends[0].n_generated, 20) << "not cut short for want of cells that nobody uses";
  while (slow.heard.ends.empty()) {
    bench.read(slow);
    bench.turn();
  }
  EXPECT_EQ(slow.heard.ends[0].n_generated, 20);
  EXPECT_EQ(slow.heard.tokens(), undisturbed(endless).tokens());
}

TEST(SlowReader, APauseForItsSakeIsTakenOverByAUsersAndNotTheOtherWay) {
  LoopBench bench(roomy());
  Client client = bench.submit(greedy({TokenId{1}, TokenId{2}}, 100));
  bench.turns(4);
  (void)bench.pause(client.id, WaitReason::kSlowReader);
  bench.turn();
  (void)bench.pause(client.id);
  bench.turn();
  const auto again = bench.pause(client.id, WaitReason::kSlowReader);
  const auto resumed = bench.resume(client.id, {WaitReason::kSlowReader, std::nullopt});
  bench.turn();
  EXPECT_EQ((*again.poll())->reason, WaitReason::kUser);
  EXPECT_EQ((*resumed.poll())->state, State::kPaused) << "the reader reads again, but the user's pause holds";
  (void)bench.resume(client.id);
  bench.turn();
  (void)bench.pause(client.id, WaitReason::kSlowReader);
  const auto goes_on = bench.resume(client.id, {WaitReason::kSlowReader, std::nullopt});
  bench.turn();
  EXPECT_EQ((*goes_on.poll())->state, State::kRunning);
}

TEST(SlowReader, APauseByAUserWhileItsFrozenPointIsComputedHolds) {
  Pair pair;
  (void)pair.bench.pause(pair.a.id, WaitReason::kSlowReader);
  const auto seen = pair.bench.inspect(pair.a.id);
  std::optional<Reply<PauseRecord>> paused;
  pair.in_next_step([&] { paused = pair.bench.pause(pair.a.id); });
  const auto record = paused->poll();
  ASSERT_TRUE(record && *record);
  EXPECT_EQ((*record)->reason, WaitReason::kUser);
  const auto inspection = seen.poll();
  ASSERT_TRUE(inspection && *inspection);
  EXPECT_EQ((*inspection)->next.size(), 8u);
  const auto again = pair.bench.pause(pair.a.id);
  const auto resumed = pair.bench.resume(pair.a.id, {WaitReason::kSlowReader, std::nullopt});
  pair.bench.turn();
  EXPECT_TRUE((*again.poll())->has_logits) << "the row that came meanwhile is kept";
  EXPECT_EQ((*resumed.poll())->state, State::kPaused);
  (void)pair.bench.resume(pair.a.id);
  pair.bench.run(pair.a);
  EXPECT_EQ(pair.a.heard.tokens(), undisturbed(greedy({TokenId{1}, TokenId{2}}, 100)).tokens());
}

TEST(SlowReader, OneThatAsksAndNeverReadsCountsAsGone) {
  LoopBench bench(roomy());
  Client client = bench.submit(greedy({TokenId{1}, TokenId{2}}, 100), 6);
  bench.turns(10);
  for (std::size_t i = 0; i < limits::kUnsentEventsMax; ++i) {  // each round says two things
    (void)bench.pause(client.id);
    (void)bench.resume(client.id);
    bench.turn();
  }
  const auto status = bench.status(client.id);
  bench.turn();
  EXPECT_EQ((*status.poll())->end_reason, EndReason::kDisconnected);
}

// -------------------------------------------------------------------------------------------------- parked and brought
// back

class Parked : public ::testing::Test {
 protected:
  static Request lasting(std::int32_t first, std::int32_t n_tokens) {
    Request request = greedy({TokenId{first}, TokenId{first + 1}}, n_tokens);
    request.sampling.ignore_eos = true;
    return request;
  }
  static LoopOptions small_pages(std::size_t bytes_max) {
    LoopOptions options;
    options.n_page_tokens = 4;
    options.page_bytes_max = bytes_max;
    return options;
  }
  static FakeOptions tight() {
    FakeOptions options = roomy();
    options.n_cells = 40;
    return options;
  }
  // `paused` stands at 22 tokens; then one that needs nearly the whole pool comes and ends. What that took out.
  void press(LoopBench& bench, Client& paused) {
    bench.turns(20);
    (void)bench.pause(paused.id);
    bench.turn();
    Client big = bench.submit(lasting(3, 36));
    bench.run(big);
    ASSERT_EQ(big.heard.ends.size(), 1u);
    EXPECT_EQ(big.heard.ends[0].n_generated, 36) << "cut short though a paused one could give way";
  }
};

TEST_F(Parked, APausedOneComesBackFromItsPagesAndNothingIsComputedAgain) {
  LoopBench bench(tight(), small_pages(1 << 20));
  const Request request = lasting(1, 30);
  Client paused = bench.submit(request);
  press(bench, paused);
  EXPECT_GT(bench.loop().stats().n_pages_out.load(), 2u);
  const std::uint64_t n_rows_before = bench.engine().n_rows();
  bench.read(paused);
  const Position n_left = 30 - static_cast<Position>(paused.heard.tokens().size());
  (void)bench.resume(paused.id);
  bench.run(paused);
  EXPECT_EQ(paused.heard.tokens(), undisturbed(request).tokens());
  EXPECT_EQ(bench.loop().stats().n_pages_in.load(), bench.loop().stats().n_pages_out.load());
  EXPECT_LE(bench.engine().n_rows() - n_rows_before, static_cast<std::uint64_t>(n_left)) << "one row a token, no more";
}

TEST_F(Parked, WithoutMemoryForPagesItIsComputedAgain) {
  LoopBench bench(tight(), small_pages(0));
  const Request request = lasting(1, 30);
  Client paused = bench.submit(request);
  press(bench, paused);
  EXPECT_EQ(bench.loop().stats().n_pages_out.load(), 0u);
  EXPECT_EQ(bench.loop().stats().n_pages_dropped.load(), 1u);
  (void)bench.resume(paused.id);
  bench.run(paused);
  EXPECT_EQ(paused.heard.tokens(), undisturbed(request).tokens());
}

TEST_F(Parked, AnOverdueRequestGetsTheCellsOfThePausedThoughOthersKeepTheLoopBusy) {
  FakeOptions options = tight();
  LoopOptions loop_options = small_pages(1 << 20);
  loop_options.plan.overdue_after = milliseconds(20);
  LoopBench bench(options, loop_options);
  Client paused = bench.submit(lasting(1, 30));
  bench.turns(20);
  (void)bench.pause(paused.id);
  bench.turn();
  Client big = bench.submit(greedy(std::vector<TokenId>(24, TokenId{9}), 6));  // does not fit beside the paused one
  for (int i = 0; i < 60 && big.heard.ends.empty(); ++i) {
    Client small = bench.submit(lasting(20 + 2 * i, 2));
    bench.turns(3);
    bench.read(big);
  }
  ASSERT_EQ(big.heard.ends.size(), 1u) << "small ones kept it out for ever";
}

TEST_F(Parked, AResumeWhileItLeavesCallsItOff) {
  LoopBench bench(tight(), small_pages(1 << 20));
  const Request request = lasting(1, 30);
  Client paused = bench.submit(request);
  bench.turns(20);
  (void)bench.pause(paused.id);
  bench.turn();
  Client big = bench.submit(greedy(std::vector<TokenId>(30, TokenId{9}), 2));
  while (bench.loop().stats().n_pages_out.load() < 2) bench.turn();
  (void)bench.resume(paused.id);
  bench.turn();
  bench.read(paused);
  EXPECT_EQ(paused.heard.states.back().state, State::kRestoring);
  bench.run(paused);
  bench.run(big);
  bench.read(paused);
  EXPECT_EQ(paused.heard.tokens(), undisturbed(request).tokens());
  EXPECT_EQ(big.heard.ends.size(), 1u);
}

TEST(FailedStep, OfSeveralHitsOnlyWhoFailsAlone) {
  FakeOptions options = roomy();
  options.faults = {{FakeFault::Kind::kFails, 4, 1}};
  LoopBench bench(options);
  Client a = bench.submit(greedy({TokenId{1}, TokenId{2}}, 20));
  Client b = bench.submit(greedy({TokenId{3}, TokenId{4}}, 20));
  bench.run(a);
  bench.run(b);
  bench.read(a);
  EXPECT_EQ(bench.loop().stats().n_retried_alone.load(), 1u);
  EXPECT_EQ(a.heard.tokens(), undisturbed(greedy({TokenId{1}, TokenId{2}}, 20)).tokens());
  EXPECT_EQ(b.heard.tokens(), undisturbed(greedy({TokenId{3}, TokenId{4}}, 20)).tokens());
}

TEST(WholePool, APromptThatFillsItIsComputed) {
  FakeOptions options = roomy();
  options.n_cells = kPromptTokens;
  LoopBench bench(options);
  for (int round = 0; round < 2; ++round) {  // the second time its own prefix is cached
    Client client = bench.submit(greedy(long_prompt(1), 0));
    bench.run(client);
    ASSERT_EQ(client.heard.ends.size(), 1u);
    EXPECT_EQ(client.heard.ends[0].reason, EndReason::kLength);
  }
}

}  // namespace
}  // namespace fermata
