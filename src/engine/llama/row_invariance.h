#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "engine/engine.h"

namespace fermata {

// The verdict of the self-test, and the largest difference between two logits that should have been equal.
struct RowInvariance {
  Exactness exactness;
  float largest_difference = 0;
  std::string where;  // the first comparison that failed; empty if none did
};

struct RowInvarianceOptions {
  std::uint64_t seed = 1;
  // If given: makes the engine compute with so many threads; the test compares 1 with n_threads.
  std::function<void(std::int32_t)> use_threads;
  std::int32_t n_threads = 1;
};

// Computes the same random tokens through the whole model in many ways — row by row; 2, 7, 8, 64 and n_rows_max rows at
// a time; another number of threads; among neighbours; in holes of the pool; decoding at depth beside others — and
// compares every logits row bit for bit. Precondition: the pool is empty; it is again afterwards.
// An Error only if the engine cannot compute at all.
Result<RowInvariance> test_row_invariance(Engine& engine, const RowInvarianceOptions& options);

}  // namespace fermata
