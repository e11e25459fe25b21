// What other servers got wrong, at the level of the engine loop: interrupts in the middle of prefill, and cut-off work
// that is served as somebody else's cached prefix.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cases.h"

namespace fermata {
namespace {

using namespace test;
using Client = LoopBench::Client;

// ------------------------------------------------------------------------------- A2: interrupts in the middle of
// prefill

TEST(InterruptInPrefill, CancelStopsItWithinTheStepAndSamplesNothing) {
  LoopBench bench(roomy(), small_chunks());
  Client client = bench.submit(greedy(long_prompt(1), 20));
  bench.turns(4);  // 3 chunks; the first turn admits
  ASSERT_EQ(bench.engine().n_rows(), 96u);
  std::optional<Reply<Status>> reply;
  bench.in_step = [&] {
    if (!reply) reply = bench.cancel(client.id);
  };
  bench.turn();
  const auto answer = reply->poll();
  ASSERT_TRUE(answer && *answer) << "answered in the turn of the step that it ended";
  EXPECT_EQ((*answer)->computed, 96);
  EXPECT_EQ(bench.engine().n_aborted(), 1u);
  bench.turns(5);
  EXPECT_EQ(bench.engine().n_rows(), 96u);
  bench.read(client);
  EXPECT_TRUE(client.heard.text.empty());
  ASSERT_EQ(client.heard.ends.size(), 1u);
  EXPECT_EQ(client.heard.ends[0].reason, EndReason::kCancelled);
  EXPECT_EQ(client.heard.ends[0].n_generated, 0);
}

TEST(InterruptInPrefill, AReaderThatGoesAwayEndsItInTheNextTurn) {
  LoopBench bench(roomy(), small_chunks());
  Client client = bench.submit(greedy(long_prompt(1), 20));
  bench.turns(4);
  client.events->abandon();
  bench.turns(3);
  EXPECT_EQ(bench.engine().n_rows(), 96u);
  const auto status = bench.status(client.id);
  bench.turn();
  EXPECT_EQ((*status.poll())->end_reason, EndReason::kDisconnected);
}

TEST(InterruptInPrefill, PauseKeepsWhatIsComputedAndResumeGoesOnFromThere) {
  const Request request = greedy(long_prompt(1), 20);
  LoopBench bench(roomy(), small_chunks());
  Client client = bench.submit(request);
  bench.turns(4);
  std::optional<Reply<PauseRecord>> reply;
  bench.in_step = [&] {
    if (!reply) reply = bench.pause(client.id);
  };
  bench.turn();
  const auto record = reply->poll();
  ASSERT_TRUE(record && *record);
  EXPECT_EQ((*record)->computed, 96);
  EXPECT_EQ((*record)->at, kPromptTokens);
  bench.turns(3);
  EXPECT_EQ(bench.engine().n_rows(), 96u) << "a frozen generation takes part in no step";
  const auto resumed = bench.resume(client.id);
  bench.run(client);
  const Heard expected = undisturbed(request);
  EXPECT_EQ(client.heard.tokens(), expected.tokens());
  EXPECT_EQ(client.heard.text, expected.text);
  const auto n_rows = static_cast<std::uint64_t>(kPromptTokens) + client.heard.ends[0].n_generated - 1;
  EXPECT_EQ(bench.engine().n_rows(), n_rows) << "nothing is computed twice";
}

TEST(InterruptInPrefill, ANeighbourStreamLosesNoStepAndNoBit) {
  const Request streaming = greedy({TokenId{5}, TokenId{6}}, 60);
  LoopBench bench(roomy(), small_chunks());
  Client neighbour = bench.submit(streaming);
  bench.turns(3);
  Client client = bench.submit(greedy(long_prompt(1), 20));
  bench.turns(3);
  bench.in_step = [&, n = 0]() mutable {
    if (n++ == 0) (void)bench.cancel(client.id);
  };
  bench.run(neighbour);
  const Heard expected = undisturbed(streaming);
  EXPECT_EQ(neighbour.heard.tokens(), expected.tokens());
  EXPECT_EQ(bench.engine().n_aborted(), 0u) << "the interrupt came in the neighbour's step";
}

// ---------------------------------------------------------------------- A3: cut-off work as somebody else's cached
// prefix

// Ends a warm-up in some way, then sends the same prompt and one with another last token. Both must be as from a fresh
// machine, and no more may be called cached than the warm-up computed.
void expect_clean_after(const std::function<void(LoopBench&, Client&)>& cut_off) {
  Request warm_up = greedy(long_prompt(1), 20);
  LoopBench bench(roomy(), small_chunks());
  Client client = bench.submit(warm_up);
  cut_off(bench, client);
  bench.in_step = {};
  const auto n_computed = static_cast<Position>(std::min<std::uint64_t>(bench.engine().n_rows(), kPromptTokens - 1));
  for (const std::int32_t last : {1, 2}) {
    const Request next = greedy(long_prompt(last), 20);
    Client after = bench.submit(next);
    bench.run(after);
    ASSERT_EQ(after.heard.ends.size(), 1u);
    const Heard expected = undisturbed(next);
    EXPECT_EQ(after.heard.tokens(), expected.tokens());
    EXPECT_EQ(after.heard.text, expected.text);
    if (last == 1) {
      EXPECT_EQ(after.heard.ends[0].n_cached, n_computed);
    }
  }
}

TEST(CutOffWork, CancelAtAnyChunkOfPrefill) {
  for (int n_turns = 1; n_turns <= 10; ++n_turns) {
    for (const bool in_a_step : {false, true}) {
      SCOPED_TRACE(n_turns);
      expect_clean_after([&](LoopBench& bench, Client& client) {
        bench.turns(n_turns);
        if (in_a_step) {
          bench.in_step = [&, asked = false]() mutable {
            if (!std::exchange(asked, true)) (void)bench.cancel(client.id);
          };
        } else {
          (void)bench.cancel(client.id);
        }
        bench.turn();
      });
    }
  }
}

TEST(CutOffWork, CancelInDecode) {
  expect_clean_after([](LoopBench& bench, Client& client) {
    bench.turns(14);
    (void)bench.cancel(client.id);
    bench.turn();
  });
}

TEST(CutOffWork, Pause) {
  expect_clean_after([](LoopBench& bench, Client& client) {
    bench.turns(5);
    (void)bench.pause(client.id);
    bench.turn();
  });
}

TEST(CutOffWork, ContentFilter) {
  expect_clean_after([](LoopBench& bench, Client& client) {
    bench.turns(14);
    (void)bench.cancel(client.id, EndReason::kContentFilter);
    bench.turn();
  });
}

TEST(CutOffWork, AStopStringOfSeveralTokens) {
  const Heard whole = undisturbed(greedy(long_prompt(1), 20));
  // Two characters' worth of what it says, if they are whole characters; the replacement character is not in the bytes.
  std::string stop;
  for (std::size_t i = 2; i + 1 < whole.text.size() && stop.empty(); ++i)
    if (static_cast<unsigned char>(whole.text[i]) < 0x80 && static_cast<unsigned char>(whole.text[i + 1]) < 0x80)
      stop = whole.text.substr(i, 2);
  ASSERT_FALSE(stop.empty());
  Request stopped = greedy(long_prompt(1), 20);
  stopped.stop = {stop};
  LoopBench bench(roomy(), small_chunks());
  Client client = bench.submit(stopped);
  bench.run(client);
  EXPECT_EQ(client.heard.ends.at(0).stop_string, stop);
  EXPECT_EQ(client.heard.text, whole.text.substr(0, whole.text.find(stop)));
  Client after = bench.submit(greedy(long_prompt(1), 20));
  bench.run(after);
  EXPECT_EQ(after.heard.text, whole.text);
}

}  // namespace
}  // namespace fermata
