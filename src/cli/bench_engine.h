#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "engine/engine.h"

namespace fermata::cli {

// An engine that writes down when each step began and ended; everything else is the inner engine's. Steps are asked of
// the engine thread, the log is read by any. The inner engine outlives it, so that one loaded model serves many cores.
class BenchEngine final : public Engine {
 public:
  struct Step {
    Instant begin;
    Instant end;
    std::size_t n_rows = 0;
    Position position = 0;  // of its first row
    bool aborted = false;
  };

  BenchEngine(Engine& inner, const Clock& clock) : inner_(inner), clock_(clock) {}

  const EngineInfo& info() const override { return inner_.info(); }
  const Vocabulary& vocabulary() const override { return inner_.vocabulary(); }
  const SamplerFactory& samplers() const override { return inner_.samplers(); }
  const KvLedger& ledger() const override { return inner_.ledger(); }
  Result<StepStatus> step(std::span<const Row> rows, const AbortFlag* abort) override;
  std::span<const float> logits(std::size_t row) const override { return inner_.logits(row); }
  void share(SeqId from, SeqId to, Position end) override { inner_.share(from, to, end); }
  void trim(SeqId seq, Position begin) override { inner_.trim(seq, begin); }
  Result<Page> export_page(SeqId seq, Position begin, Position end) override {
    return inner_.export_page(seq, begin, end);
  }
  Result<void> import_page(SeqId seq, const Page& page) override { return inner_.import_page(seq, page); }

  // Called on the engine thread during the next step, once, right after its rows are computed.
  void at_end_of_step(std::function<void()> call) { at_end_ = std::move(call); }

  // The log. Aborted steps stand in it too.
  void forget();
  std::vector<Step> steps() const;
  Step last() const;
  // Sleeps until n more steps have been finished whole; false if that takes longer than a minute.
  bool wait_done(std::size_t n);

 private:
  Engine& inner_;
  const Clock& clock_;
  std::function<void()> at_end_;
  mutable std::mutex mutex_;
  std::condition_variable done_;
  std::vector<Step> steps_;
  std::size_t n_done_ = 0;
};

}  // namespace fermata::cli
