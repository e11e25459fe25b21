#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/fake/fake_model.h"
#include "engine/fake/fake_vocabulary.h"

namespace fermata {

// Test equipment: errors that a simulation must find, or it finds nothing. Never planted outside a self-check.
enum class PlantedBug {
  kNone,
  kCellsOutOfOrder,       // a row reads its cells in the order of the pool, not of positions
  kSharedCellFreedEarly,  // a sequence that trims shared cells takes them from their other owners as well
  kLogitsRowLost,         // logits(row) answers with those of the row before it that has some
  kAbortSpoilsCells,      // an aborted step leaves rubbish in the last cell that its sequences had before it
};

// Something that goes wrong in steps [at_step, at_step + n_steps), counted from 0 over all calls of step().
struct FakeFault {
  enum class Kind {
    kFails,    // Code::kEngine
    kNoCells,  // Code::kNoCells, though there are some
    kAborts,   // StepStatus::kAborted, though no flag is raised
  };
  Kind kind = Kind::kFails;
  std::uint64_t at_step = 0;
  std::uint64_t n_steps = 1;
};
inline constexpr std::uint64_t kForEver = UINT64_MAX;

struct FakeOptions {
  std::int32_t n_cells = 512;
  std::int32_t n_seqs = limits::kSequencesMax;
  std::int32_t n_rows_max = limits::kPrefillRowsMax;
  std::int32_t n_ctx_train = 1 << 20;
  FakeModel model;                                 // none: hash_model() with its defaults
  std::uint64_t weights = 1;                       // part of the fingerprint; engines of unequal weights swap no pages
  std::shared_ptr<const SamplerFactory> samplers;  // none: PlainSamplerFactory
  std::vector<FakeFault> faults;

  // A step asks the abort flag so often while its rows are half done. Before each time on_poll is called, with 0, 1,
  // ...: there a test sends commands "in the middle of a step".
  std::int32_t n_polls = 4;
  std::function<void(std::int32_t poll)> on_poll;
  // Called once in each step whose rows are computed, before it returns: there time passes.
  std::function<void(std::size_t n_rows)> on_compute;

  PlantedBug bug = PlantedBug::kNone;
};

// For FakeOptions::on_compute: a step takes per_step + n_rows * per_row. The clock must outlive the engine.
std::function<void(std::size_t)> take_time(ManualClock& clock, Duration per_step, Duration per_row);

// An engine without a model: deterministic, scripted, as fast as a function call, with a true pool (KvLedger, moved as
// libllama moves its own). Everything that one can do to a real engine can be done to it, so whatever runs on an Engine
// runs here: simulations, demos, clients' tests. Owner: one thread, as for every Engine.
class FakeEngine final : public Engine {
 public:
  explicit FakeEngine(FakeOptions options = {});

  const EngineInfo& info() const override { return info_; }
  const FakeVocabulary& vocabulary() const override { return *vocabulary_; }
  const SamplerFactory& samplers() const override { return *options_.samplers; }
  const KvLedger& ledger() const override { return ledger_; }

  Result<StepStatus> step(std::span<const Row> rows, const AbortFlag* abort) override;
  std::span<const float> logits(std::size_t row) const override;
  void share(SeqId from, SeqId to, Position end) override { ledger_.share(from, to, end); }
  void trim(SeqId seq, Position begin) override;
  Result<Page> export_page(SeqId seq, Position begin, Position end) override;
  Result<void> import_page(SeqId seq, const Page& page) override;

  // --- what happened, for tests
  std::uint64_t n_steps() const { return n_steps_; }      // calls of step()
  std::uint64_t n_rows() const { return n_rows_; }        // computed
  std::uint64_t n_aborted() const { return n_aborted_; }  // steps
  // The tokens of a sequence, as its cells have them.
  std::vector<TokenId> tokens(SeqId seq) const;

 private:
  bool has_fault(FakeFault::Kind kind) const;
  bool compute(std::span<const Row> rows, std::span<const CellIndex> cells, const AbortFlag* abort);
  void compute_row(const Row& row, CellIndex cell, std::vector<float>& logits);
  void take_back(std::span<const Row> rows);
  std::vector<FakeCell> read(SeqId seq, Position end) const;

  FakeOptions options_;
  std::shared_ptr<const FakeVocabulary> vocabulary_;
  EngineInfo info_;
  KvLedger ledger_;
  std::vector<FakeCell> cells_;             // [n_cells]
  std::vector<std::vector<float>> logits_;  // [rows of the last step][n_vocab, or 0]
  std::uint64_t n_steps_ = 0;
  std::uint64_t n_rows_ = 0;
  std::uint64_t n_aborted_ = 0;
};

}  // namespace fermata
