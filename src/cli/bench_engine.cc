#include "cli/bench_engine.h"

#include <utility>

namespace fermata::cli {

Result<StepStatus> BenchEngine::step(std::span<const Row> rows, const AbortFlag* abort) {
  Step step{clock_.now(), {}, rows.size(), rows.front().position, false};
  Result<StepStatus> status = ForwardingEngine::step(rows, abort);
  step.end = clock_.now();
  step.aborted = !status || *status == StepStatus::kAborted;
  {
    std::lock_guard lock(mutex_);
    steps_.push_back(step);
    if (!step.aborted) ++n_done_;
  }
  done_.notify_all();
  if (const auto call = std::exchange(at_end_, {})) call();
  return status;
}

void BenchEngine::forget() {
  std::lock_guard lock(mutex_);
  steps_.clear();
}

std::vector<BenchEngine::Step> BenchEngine::steps() const {
  std::lock_guard lock(mutex_);
  return steps_;
}

BenchEngine::Step BenchEngine::last() const {
  std::lock_guard lock(mutex_);
  return steps_.empty() ? Step{} : steps_.back();
}

bool BenchEngine::wait_done(std::size_t n) {
  std::unique_lock lock(mutex_);
  const std::size_t target = n_done_ + n;
  return done_.wait_for(lock, std::chrono::minutes(1), [&] { return n_done_ >= target; });
}

}  // namespace fermata::cli
