// Every logits row and token of random generations on the real engine, compared bit for bit with a plain loop.
// FERMATA_ORACLE_RUNS: how many on the tiny model; FERMATA_ORACLE_SEED: where to begin. A failure names its seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "engine/llama/engine.h"
#include "oracle_world.h"
#include "plain_loop.h"

namespace fermata::oracle {
namespace {

constexpr std::int32_t kRunsPerWorld = 100;

std::int64_t from_environment(const char* name, std::int64_t otherwise) {
  const char* value = std::getenv(name);
  return value ? std::atoll(value) : otherwise;
}

std::string model_from(const char* variable) {
  const char* path = std::getenv(variable);
  return path ? path : "";
}

struct Totals {
  OracleCounts counts;
  std::uint64_t n_aborted = 0;
  std::uint64_t n_preempted = 0;
  std::uint64_t n_pages_out = 0;
  std::uint64_t n_pages_in = 0;
  std::uint64_t n_cached_rows = 0;
  std::uint64_t n_holes_filled = 0;
  void add(const OracleWorld& world) {
    const OracleCounts& c = world.counts();
    counts.n_compared += c.n_compared;
    counts.n_rows += c.n_rows;
    counts.n_pauses += c.n_pauses;
    counts.n_pauses_in_step += c.n_pauses_in_step;
    counts.n_pauses_with_logits += c.n_pauses_with_logits;
    counts.n_pauses_in_prefill += c.n_pauses_in_prefill;
    counts.n_cancelled += c.n_cancelled;
    counts.n_inspections += c.n_inspections;
    counts.n_revised += c.n_revised;
    counts.n_revised_stale += c.n_revised_stale;
    counts.n_revisions_refused += c.n_revisions_refused;
    counts.n_edited_prompts += c.n_edited_prompts;
    counts.n_notes += c.n_notes;
    counts.n_branches += c.n_branches;
    counts.n_other_sampling += c.n_other_sampling;
    counts.n_past_512 += c.n_past_512;
    counts.n_with_grammar += c.n_with_grammar;
    counts.n_stopped_by_string += c.n_stopped_by_string;
    n_aborted += world.stats().n_steps_aborted;
    n_preempted += world.stats().n_preempted + world.stats().n_parked;
    n_pages_out += world.stats().n_pages_out;
    n_pages_in += world.stats().n_pages_in;
    n_cached_rows += world.stats().n_cached_rows;
    n_holes_filled += world.n_holes_filled();
  }
  void print() const {
    std::cout << counts.n_compared << " generations, " << counts.n_rows << " logits rows equal; " << counts.n_pauses
              << " pauses (" << counts.n_pauses_in_step << " in a step, " << counts.n_pauses_with_logits
              << " with logits, " << counts.n_pauses_in_prefill << " in prefill), " << n_aborted << " aborted steps, "
              << counts.n_cancelled << " cancelled, " << n_preempted << " preempted or parked, " << n_pages_out
              << " pages out, " << n_pages_in << " in, " << n_holes_filled << " steps into holes, " << n_cached_rows
              << " rows from the prefix cache, " << counts.n_past_512 << " past 512 tokens, " << counts.n_with_grammar
              << " with grammar, " << counts.n_stopped_by_string << " stopped by a string, " << counts.n_inspections
              << " inspections, " << counts.n_revised << " revised (" << counts.n_revised_stale << " too late, "
              << counts.n_revisions_refused << " refused), " << counts.n_edited_prompts << " edits of a prompt, "
              << counts.n_notes << " notes, " << counts.n_branches << " branches, " << counts.n_other_sampling
              << " with other sampling\n";
  }
};

Totals compare_runs(const LlamaOptions& options, const std::string& kv, std::int32_t n_runs, OracleOptions world) {
  Totals totals;
  Result<std::unique_ptr<LlamaEngine>> engine = LlamaEngine::load(options, {});
  EXPECT_TRUE(engine.has_value()) << (engine ? "" : engine.error().message + " " + engine.error().detail);
  if (!engine) return totals;
  EXPECT_TRUE((*engine)->info().exactness.with_neighbours) << (*engine)->info().exactness.why;
  PlainLoop reference(const_cast<llama_model*>((*engine)->model()), kv, 1024, (*engine)->options().n_threads);
  world.seed =
      static_cast<std::uint64_t>(from_environment("FERMATA_ORACLE_SEED", static_cast<std::int64_t>(world.seed)));
  for (std::int32_t done = 0; done < n_runs; done += kRunsPerWorld, ++world.seed) {
    world.n_runs = std::min(kRunsPerWorld, n_runs - done);
    OracleWorld one(**engine, reference, world);
    const std::string difference = one.run();
    EXPECT_EQ(difference, "") << "replay with FERMATA_ORACLE_SEED=" << world.seed;
    if (!difference.empty()) break;
    totals.add(one);
    one.release_pool();
  }
  EXPECT_EQ((*engine)->n_mispredictions(), 0u);
  totals.print();
  return totals;
}

TEST(Oracle, TinyModelEqualsThePlainLoopBitForBit) {
  LlamaOptions options;
  options.model_path = model_from("FERMATA_TINY_MODEL");
  ASSERT_FALSE(options.model_path.empty()) << "FERMATA_TINY_MODEL must name the tiny model";
  options.n_cells = 1024;  // small, so that generations give way to each other
  options.n_sequences = 48;
  const auto n_runs = static_cast<std::int32_t>(from_environment("FERMATA_ORACLE_RUNS", 5000));
  const Totals totals = compare_runs(options, "f16", n_runs, {.seed = 1, .n_live_max = 8});
  EXPECT_EQ(totals.counts.n_compared, static_cast<std::uint64_t>(n_runs) + totals.counts.n_branches);
  const auto at_least = static_cast<std::uint64_t>(n_runs / 100);
  EXPECT_GE(totals.counts.n_pauses, 10 * at_least);
  EXPECT_GE(totals.counts.n_pauses_in_step, at_least);
  EXPECT_GE(totals.counts.n_pauses_with_logits, at_least);
  EXPECT_GE(totals.counts.n_pauses_in_prefill, at_least);
  EXPECT_GE(totals.counts.n_cancelled, at_least);
  EXPECT_GE(totals.counts.n_past_512, at_least);
  EXPECT_GE(totals.counts.n_with_grammar, at_least);
  EXPECT_GE(totals.counts.n_stopped_by_string, at_least);
  EXPECT_GE(totals.counts.n_inspections, at_least);
  EXPECT_GE(totals.counts.n_revised, 2 * at_least);
  EXPECT_GE(totals.counts.n_revised_stale, at_least / 2);
  EXPECT_GE(totals.counts.n_edited_prompts, at_least / 2);
  EXPECT_GE(totals.counts.n_notes, at_least / 2);
  EXPECT_GE(totals.counts.n_branches, at_least);
  EXPECT_GE(totals.counts.n_other_sampling, at_least);
  EXPECT_GE(totals.n_aborted, at_least);
  EXPECT_GE(totals.n_preempted, at_least);
  EXPECT_GE(totals.n_pages_in, at_least);
  EXPECT_GE(totals.n_holes_filled, at_least);
  EXPECT_GE(totals.n_cached_rows, 100 * at_least);
}

class OtherKvTypes : public testing::TestWithParam<KvType> {};
TEST_P(OtherKvTypes, TinyModelEqualsThePlainLoop) {
  LlamaOptions options;
  options.model_path = model_from("FERMATA_TINY_MODEL");
  ASSERT_FALSE(options.model_path.empty()) << "FERMATA_TINY_MODEL must name the tiny model";
  options.n_cells = 1024;  // small, so that generations give way to each other
  options.n_sequences = 48;
  options.k_type = options.v_type = GetParam();
  const auto n_runs = static_cast<std::int32_t>(from_environment("FERMATA_ORACLE_RUNS", 5000) / 20);
  const char* kv = GetParam() == KvType::kQ8_0 ? "q8_0" : "bf16";
  const Totals totals = compare_runs(options, kv, n_runs, {.seed = 1001});
  EXPECT_EQ(totals.counts.n_compared, static_cast<std::uint64_t>(n_runs) + totals.counts.n_branches);
}
INSTANTIATE_TEST_SUITE_P(Oracle, OtherKvTypes, testing::Values(KvType::kQ8_0, KvType::kBf16));

TEST(Oracle, RealModelEqualsThePlainLoopBitForBit) {
  LlamaOptions options;
  options.model_path = model_from("FERMATA_TEST_MODEL");
  ASSERT_FALSE(options.model_path.empty()) << "FERMATA_TEST_MODEL must name the real model";
  options.n_cells = 1024;  // small, so that generations give way to each other
  options.n_sequences = 48;
  const auto n_runs = static_cast<std::int32_t>(from_environment("FERMATA_ORACLE_REAL_RUNS", 50));
  const Totals totals = compare_runs(options, "f16", n_runs, {.seed = 2001});
  EXPECT_EQ(totals.counts.n_compared, static_cast<std::uint64_t>(n_runs) + totals.counts.n_branches);
}

}  // namespace
}  // namespace fermata::oracle
