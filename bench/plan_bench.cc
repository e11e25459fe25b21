// What a plan costs, against the number of generations: it must stay far below a step (milliseconds).
#include <benchmark/benchmark.h>

#include <vector>

#include "scheduler/plan.h"

namespace fermata {
namespace {

constexpr Instant kNow{1'000'000'000'000};

// Streams, with one long prompt among them and as many that wait; a cache to evict from.
void plan_with_generations(benchmark::State& state) {
  const auto n = static_cast<std::uint64_t>(state.range(0));
  const bool is_full = state.range(1) != 0;
  std::vector<GenerationView> views;
  for (std::uint64_t i = 1; i <= 2 * n; ++i) {
    GenerationView view;
    view.id = GenerationId{i * 7919 % 100'003};
    view.running = i <= n;
    view.queued = !view.running;
    view.wanted = i == 1 ? 4000 : 500;
    view.computed = view.queued ? 0 : i == 1 ? 100 : 499;
    view.n_room_min = 501;
    view.priority = static_cast<std::int32_t>(i % 3);
    view.arrival = view.last_planned = {kNow.ns - static_cast<std::int64_t>(i * 7919 % 1009) * 1'000'000};
    views.push_back(view);
  }
  std::vector<CachedView> cached;
  for (int s = 0; s < 100; ++s) cached.push_back({SeqId{s}, 300, {s}});
  const PoolView pool{200'000, is_full ? 0u : 100'000u, 20, cached};
  for (auto _ : state) benchmark::DoNotOptimize(make_plan(views, pool, {}, kNow));
  state.SetComplexityN(state.range(0));
}
BENCHMARK(plan_with_generations)->ArgNames({"running", "full"})->ArgsProduct({{1, 4, 16, 64, 256}, {0, 1}});

}  // namespace
}  // namespace fermata

BENCHMARK_MAIN();
