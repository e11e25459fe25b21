#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fermata::cli {

// How much is measured; the flags of `fermata bench core`. Pure.
struct BenchPlan {
  std::int32_t n_rounds = 3;
  std::int32_t n_samples = 1000;     // of each latency
  std::int32_t n_aging = 200;        // requests before the aged cells
  double seconds_max = 600;          // of one latency cell, and of filling the pool: then it ends with what it has
  std::int32_t n_prompt_max = 4000;  // longer prompts are left out of the speeds
  bool aged = true;

  // One round, 100 pauses.
  static BenchPlan quick();
  // A second pause right after an aborted one takes ten times as long to sample: a fifth of them, at least 20.
  std::int32_t n_second_pauses() const;
};

// One speed to be measured.
struct SpeedCell {
  std::size_t n_streams = 1;
  std::size_t n_prompt = 0;
  bool operator==(const SpeedCell&) const = default;
};
std::vector<SpeedCell> decode_cells(const BenchPlan& plan);
std::vector<SpeedCell> prefill_cells(const BenchPlan& plan);

inline constexpr std::int32_t kFreezesMax = 100;  // at one length; each needs two tokens

// Lengths at which a freeze is measured: those that fit into the pool and the model's context with their tokens.
std::vector<std::int32_t> freeze_lengths(std::int32_t n_cells, std::int32_t n_ctx_train);

}  // namespace fermata::cli
