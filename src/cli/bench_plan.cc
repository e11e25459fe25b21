#include "cli/bench_plan.h"

#include <algorithm>

namespace fermata::cli {
namespace {

std::vector<SpeedCell> without_long_prompts(std::vector<SpeedCell> cells, const BenchPlan& plan) {
  std::erase_if(cells,
                [&](const SpeedCell& cell) { return cell.n_prompt > static_cast<std::size_t>(plan.n_prompt_max); });
  return cells;
}

}  // namespace

BenchPlan BenchPlan::quick() {
  BenchPlan plan;
  plan.n_rounds = 1;
  plan.n_samples = 100;
  plan.n_aging = 40;
  plan.seconds_max = 30;
  return plan;
}

std::int32_t BenchPlan::n_second_pauses() const { return std::max(n_samples / 5, 20); }

std::vector<SpeedCell> decode_cells(const BenchPlan& plan) {
  std::vector<SpeedCell> cells;
  for (const std::size_t n_prompt : {100, 900})
    for (const std::size_t n_streams : {1, 4, 8}) cells.push_back({n_streams, n_prompt});
  return without_long_prompts(std::move(cells), plan);
}

std::vector<SpeedCell> prefill_cells(const BenchPlan& plan) {
  return without_long_prompts({{1, 30}, {1, 500}, {1, 3000}}, plan);
}

std::vector<std::int32_t> freeze_lengths(std::int32_t n_cells, std::int32_t n_ctx_train) {
  std::vector<std::int32_t> lengths = {100, 1000, 3000, 10'000, 30'000, 100'000};
  std::erase_if(lengths,
                [&](std::int32_t length) { return length + 4 * kFreezesMax > std::min(n_cells, n_ctx_train); });
  return lengths;
}

}  // namespace fermata::cli
