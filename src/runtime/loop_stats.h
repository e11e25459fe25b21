#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "base/histogram.h"
#include "generation/state.h"

namespace fermata {

// From 0.1 ms to 10 s: a step, a pause.
inline std::vector<double> seconds_of_steps() {
  return {0.0001, 0.00025, 0.0005, 0.001, 0.0016, 0.0032, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 1, 10};
}

// Steps of one kind.
struct StepStats {
  Histogram seconds{seconds_of_steps()};
  Histogram rows{{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}};
};

// Counted since the start, and what is now. Written by the engine thread, read by any.
struct LoopStats {
  std::atomic<std::uint64_t> n_steps{0};        // begun
  std::atomic<std::uint64_t> n_steps_ended{0};  // done, aborted or failed
  std::atomic<std::uint64_t> n_steps_aborted{0};
  std::atomic<std::uint64_t> n_steps_failed{0};
  std::atomic<std::uint64_t> n_retried_alone{0};  // steps of several that failed
  std::atomic<std::uint64_t> n_decode_rows{0};    // computed
  std::atomic<std::uint64_t> n_prefill_rows{0};   // computed
  std::atomic<std::uint64_t> n_cached_rows{0};    // found in the pool instead
  std::atomic<std::uint64_t> n_preempted{0};
  std::atomic<std::uint64_t> n_parked{0};  // paused ones that gave up their cells under pressure
  std::atomic<std::uint64_t> n_pages_out{0};
  std::atomic<std::uint64_t> n_pages_in{0};
  std::atomic<std::uint64_t> n_pages_dropped{0};  // generations whose pages found no place
  std::atomic<std::uint64_t> n_evictions{0};

  StepStats decode;   // that were not aborted and did not fail
  StepStats prefill;  // likewise
  // Of pauses that somebody asked for, by who is behind them, in seconds. Frozen: from the call until no further token
  // will be sampled and everything can be read. Released: until the step in flight, if any, had ended.
  std::array<Histogram, kInterruptClasses> frozen{Histogram{seconds_of_steps()}, Histogram{seconds_of_steps()},
                                                  Histogram{seconds_of_steps()}};
  std::array<Histogram, kInterruptClasses> released{Histogram{seconds_of_steps()}, Histogram{seconds_of_steps()},
                                                    Histogram{seconds_of_steps()}};

  // Looked at about once a second. What is neither free nor cached belongs to generations.
  std::atomic<std::uint32_t> n_cells_free{0};
  std::atomic<std::uint32_t> n_cells_cached{0};
  std::atomic<std::int32_t> n_seqs_free{0};
  std::atomic<std::int32_t> n_seqs_cached{0};
};

}  // namespace fermata
