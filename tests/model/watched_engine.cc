#include "watched_engine.h"

#include <algorithm>
#include <utility>

#include "plain_loop.h"

namespace fermata::oracle {
namespace {

class RecordingSampler final : public Sampler {
 public:
  RecordingSampler(std::unique_ptr<Sampler> inner, std::uint64_t seed, RowRecords& records)
      : inner_(std::move(inner)), seed_(seed), records_(records) {}

  Result<Choice> sample(std::span<const float> logits, Position position) const override {
    records_.note(seed_, position, hash_row(logits.data(), logits.size()));
    return inner_->sample(logits, position);
  }
  Result<void> accept(TokenId token, TokenRole role, const SamplerCarry& carry) override {
    return inner_->accept(token, role, carry);
  }
  std::unique_ptr<Sampler> clone() const override {
    return std::make_unique<RecordingSampler>(inner_->clone(), seed_, records_);
  }

 private:
  std::unique_ptr<Sampler> inner_;
  std::uint64_t seed_;
  RowRecords& records_;
};

class RecordingFactory final : public SamplerFactory {
 public:
  RecordingFactory(const SamplerFactory& inner, RowRecords& records) : inner_(inner), records_(records) {}
  Result<std::unique_ptr<Sampler>> make(const SamplingParams& params) const override {
    Result<std::unique_ptr<Sampler>> inner = inner_.make(params);
    if (!inner) return inner.error();
    return std::unique_ptr<Sampler>(std::make_unique<RecordingSampler>(*std::move(inner), params.seed, records_));
  }

 private:
  const SamplerFactory& inner_;
  RowRecords& records_;
};

// Asked from several threads: the question that finds the count at zero disturbs, and it alone.
class DisturbingFlag final : public AbortFlag {
 public:
  DisturbingFlag(const AbortFlag* inner, std::int32_t countdown, const std::function<void()>& disturb)
      : inner_(inner), countdown_(countdown), disturb_(disturb) {}
  bool raised() const override {
    if (countdown_.fetch_sub(1, std::memory_order_relaxed) == 0) disturb_();
    return inner_ && inner_->raised();
  }

 private:
  const AbortFlag* inner_;
  mutable std::atomic<std::int32_t> countdown_;
  const std::function<void()>& disturb_;
};

bool fills_a_hole(const KvLedger& ledger, std::size_t n_rows) {
  const auto cells = ledger.find_slot(static_cast<std::uint32_t>(n_rows));
  return cells && !cells->empty() && raw(cells->front()) + 1 < ledger.high_water();
}

}  // namespace

std::unique_ptr<SamplerFactory> make_recording_samplers(const SamplerFactory& inner, RowRecords& records) {
  return std::make_unique<RecordingFactory>(inner, records);
}

void WatchedEngine::disturb_next_step(std::int32_t countdown, std::function<void()> in_step) {
  countdown_ = countdown;
  in_step_ = std::move(in_step);
}

Result<StepStatus> WatchedEngine::step(std::span<const Row> rows, const AbortFlag* abort) {
  if (fills_a_hole(ledger(), rows.size())) ++n_holes_filled_;
  if (!in_step_) return ForwardingEngine::step(rows, abort);
  const std::function<void()> disturb = std::exchange(in_step_, {});
  const DisturbingFlag flag(abort, countdown_, disturb);
  return ForwardingEngine::step(rows, &flag);
}

}  // namespace fermata::oracle
