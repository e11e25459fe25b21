#pragma once

#include <span>

#include "engine/engine.h"

namespace fermata {

// Does what the engine beneath it does. For those that watch or change some of the calls: they override these.
// The engine beneath may be a member of the deriving class: it is not touched before the first call.
class ForwardingEngine : public Engine {
 public:
  explicit ForwardingEngine(Engine& beneath) : beneath_(beneath) {}

  const EngineInfo& info() const override { return beneath_.info(); }
  const Vocabulary& vocabulary() const override { return beneath_.vocabulary(); }
  const SamplerFactory& samplers() const override { return beneath_.samplers(); }
  const KvLedger& ledger() const override { return beneath_.ledger(); }
  Result<StepStatus> step(std::span<const Row> rows, const AbortFlag* abort) override {
    return beneath_.step(rows, abort);
  }
  std::span<const float> logits(std::size_t row) const override { return beneath_.logits(row); }
  void share(SeqId from, SeqId to, Position end) override { beneath_.share(from, to, end); }
  void trim(SeqId seq, Position begin) override { beneath_.trim(seq, begin); }
  Result<Page> export_page(SeqId seq, Position begin, Position end) override {
    return beneath_.export_page(seq, begin, end);
  }
  Result<void> import_page(SeqId seq, const Page& page) override { return beneath_.import_page(seq, page); }

 private:
  Engine& beneath_;
};

}  // namespace fermata
