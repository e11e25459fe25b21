#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/forwarding_engine.h"

namespace fermata::oracle {

// Hashes of the logits rows that each generation sampled from, by position. Generations are told apart by their seed.
class RowRecords {
 public:
  void note(std::uint64_t seed, Position position, std::uint64_t hash) { rows_[seed][position] = hash; }
  const std::map<Position, std::uint64_t>& of(std::uint64_t seed) { return rows_[seed]; }
  void forget(std::uint64_t seed) { rows_.erase(seed); }

 private:
  std::map<std::uint64_t, std::map<Position, std::uint64_t>> rows_;
};

// Samplers that do what the given factory's do, and note the rows they are shown.
std::unique_ptr<SamplerFactory> make_recording_samplers(const SamplerFactory& inner, RowRecords& records);

// An engine that passes everything on, but can be disturbed: `in_step` is called in the middle of a step, at the
// n-th question whether to abort (n counted down from `countdown`); there a test sends commands.
class WatchedEngine final : public ForwardingEngine {
 public:
  WatchedEngine(Engine& inner, const SamplerFactory& samplers) : ForwardingEngine(inner), samplers_(samplers) {}

  void disturb_next_step(std::int32_t countdown, std::function<void()> in_step);
  std::uint64_t n_holes_filled() const { return n_holes_filled_; }

  const SamplerFactory& samplers() const override { return samplers_; }
  Result<StepStatus> step(std::span<const Row> rows, const AbortFlag* abort) override;

 private:
  const SamplerFactory& samplers_;
  std::int32_t countdown_ = -1;
  std::function<void()> in_step_;
  std::uint64_t n_holes_filled_ = 0;  // steps that wrote a cell below another sequence's
};

}  // namespace fermata::oracle
