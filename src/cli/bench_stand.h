#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "cli/bench_engine.h"
#include "cli/bench_plan.h"
#include "cli/bench_row.h"
#include "engine/engine.h"
#include "runtime/core.h"

namespace fermata::cli {

// What the parts of the bench stand on: an engine, prompts from a seed, and cores on a pool that is empty at first.
// Owned by the main thread; `engine` may be asked by others only as Engine says.
class BenchStand {
 public:
  BenchStand(Engine& engine, const Clock& clock, const PlanLimits& limits)
      : engine_(engine), clock_(clock), limits_(limits) {}

  // A core of its own on the one engine. Only one at a time.
  struct Run {
    BenchEngine* engine;
    std::unique_ptr<Core> core;
  };
  Run fresh_run();
  // What cores before left in the pool goes.
  void empty_pool();

  const Clock& clock() const { return clock_; }
  Engine& engine() { return engine_; }
  std::vector<TokenId> random_tokens(std::size_t n);
  // Uniform in [0, below).
  double random(double below) { return std::uniform_real_distribution<double>(0, below)(random_); }
  // Most likely token first, and no token ends it.
  static Request greedy(std::vector<TokenId> prompt, std::int32_t n_tokens);

  double ms_since(Instant begun) const { return (clock_.now() - begun).ms(); }

 private:
  Engine& engine_;
  const Clock& clock_;
  const PlanLimits limits_;
  std::mt19937_64 random_{20240229};
};

// Ends the process with a sentence: a bench that cannot go on has nothing to say.
[[noreturn]] void give_up(std::string_view why);
template <class T>
T or_give_up(Result<T> result) {
  if (!result) give_up(result.error().message);
  return *std::move(result);
}

void wait_until_paused(EventRing& events);
void wait_for_end(EventRing& events);
// Sleeps so long; a bench may.
void sleep_ms(double ms);

// --- the parts. Each appends its rows.
void bench_decode(BenchStand& stand, const BenchPlan& plan, std::vector<BenchRow>& rows);
void bench_prefill(BenchStand& stand, const BenchPlan& plan, std::vector<BenchRow>& rows);
void bench_interrupts(BenchStand& stand, const BenchPlan& plan, std::vector<BenchRow>& rows);
void bench_freeze(BenchStand& stand, const BenchPlan& plan, std::vector<BenchRow>& rows);

}  // namespace fermata::cli
