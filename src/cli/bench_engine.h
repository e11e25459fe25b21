#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "engine/forwarding_engine.h"

namespace fermata::cli {

// An engine that writes down when each step began and ended; everything else is the inner engine's. Steps are asked of
// the engine thread, the log is read by any. The inner engine outlives it, so that one loaded model serves many cores.
class BenchEngine final : public ForwardingEngine {
 public:
  struct Step {
    Instant begin;
    Instant end;
    std::size_t n_rows = 0;
    Position position = 0;  // of its first row
    bool aborted = false;
  };

  BenchEngine(Engine& inner, const Clock& clock) : ForwardingEngine(inner), clock_(clock) {}

  Result<StepStatus> step(std::span<const Row> rows, const AbortFlag* abort) override;

  // Called on the engine thread during the next step, once, right after its rows are computed.
  void at_end_of_step(std::function<void()> call) { at_end_ = std::move(call); }

  // The log. Aborted steps stand in it too.
  void forget();
  std::vector<Step> steps() const;
  Step last() const;
  // Sleeps until n more steps have been finished whole; false if that takes longer than a minute.
  bool wait_done(std::size_t n);

 private:
  const Clock& clock_;
  std::function<void()> at_end_;
  mutable std::mutex mutex_;
  std::condition_variable done_;
  std::vector<Step> steps_;
  std::size_t n_done_ = 0;
};

}  // namespace fermata::cli
