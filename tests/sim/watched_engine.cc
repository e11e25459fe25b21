#include "watched_engine.h"

#include <algorithm>
#include <utility>

#include "random.h"

namespace fermata::sim {

// For the plants: raised by any interrupt; or by the true flag, which the loop holds down after an aborted step.
class WatchedEngine::PlantedFlag final : public AbortFlag {
 public:
  PlantedFlag(const WatchedEngine& engine, const AbortFlag* right) : engine_(engine), right_(right) {}
  bool raised() const override {
    if (engine_.plant_ == Plant::kNeighboursStepAborted && !engine_.last_aborted_ && !engine_.interrupted_now_.empty())
      return true;
    if (engine_.plant_ == Plant::kAbortedTwice && engine_.last_aborted_ && !engine_.interrupted_now_.empty())
      return true;
    return right_ != nullptr && right_->raised();
  }

 private:
  const WatchedEngine& engine_;
  const AbortFlag* right_;
};

WatchedEngine::WatchedEngine(FakeOptions options, Plant plant, Coverage& coverage)
    : ForwardingEngine(fake_),
      fake_(options),
      faults_(options.faults),
      plant_(plant),
      coverage_(&coverage),
      last_owner_(static_cast<std::size_t>(options.n_cells), SeqId{-1}) {}

void WatchedEngine::note_interrupt(GenerationId id) {
  interrupted_.insert(id);
  if (in_step_) interrupted_now_.insert(id);
}

void WatchedEngine::turn_begins() {
  only_one_ = kNoGeneration;
  interrupted_.clear();
}

Result<StepStatus> WatchedEngine::step(std::span<const Row> rows, const AbortFlag* abort) {
  std::map<SeqId, std::size_t> seqs;
  for (const Row& row : rows) ++seqs[row.seq];
  const bool is_prefill = rows.size() > seqs.size();
  if (is_prefill && seqs.size() > 1) {
    coverage_->count("short prompts together");
    for (const auto& [seq, n_rows] : seqs)
      SIM_EXPECT(n_rows > 1, "decode rows and prefill chunks go in steps of their own");
  }
  const auto slot = fake_.ledger().find_slot(static_cast<std::uint32_t>(rows.size()));
  const std::uint32_t high_water = fake_.ledger().high_water();
  const bool aborts_by_itself = engine_aborts_by_itself();

  in_step_ = true;
  interrupted_now_.clear();
  const PlantedFlag flag(*this, abort);
  Result<StepStatus> status = fake_.step(rows, &flag);
  in_step_ = false;

  const bool aborted = status && *status == StepStatus::kAborted;
  if (aborted && aborts_by_itself) coverage_->count("step aborted: by the engine");
  if (aborted && !aborts_by_itself) check_abort(seqs.size(), is_prefill);
  if (status && !aborted) {
    check_done(seqs.size());
    count_holes(*slot, rows, high_water);
  }
  last_aborted_ = aborted;
  return status;
}

bool WatchedEngine::engine_aborts_by_itself() const {
  return std::any_of(faults_.begin(), faults_.end(), [&](const FakeFault& fault) {
    return fault.kind == FakeFault::Kind::kAborts && fake_.n_steps() >= fault.at_step &&
           fake_.n_steps() - fault.at_step < fault.n_steps;
  });
}

void WatchedEngine::check_abort(std::size_t n_seqs, bool is_prefill) {
  SIM_EXPECT(!last_aborted_, "the step after an aborted one was aborted");
  SIM_EXPECT(n_seqs <= interrupted_.size(), "a step of " + std::to_string(n_seqs) + " was aborted though " +
                                                std::to_string(interrupted_.size()) + " are interrupted");
  coverage_->count(is_prefill    ? "step aborted: prefill"
                   : n_seqs == 1 ? "step aborted: decode alone"
                                 : "step aborted: several, all interrupted");
}

void WatchedEngine::check_done(std::size_t n_seqs) {
  if (interrupted_now_.empty()) return;
  if (n_seqs > 1) coverage_->count("step kept: a neighbour was in it");
  if (last_aborted_) coverage_->count("step kept: the one before was aborted");
  SIM_EXPECT(last_aborted_ || !interrupted_now_.contains(only_one_), "an interrupt did not end the step it could end");
}

void WatchedEngine::count_holes(std::span<const CellIndex> written, std::span<const Row> rows,
                                std::uint32_t high_water) {
  for (std::size_t i = 0; i < written.size(); ++i) {
    SeqId& owner = last_owner_[raw(written[i])];
    if (raw(written[i]) < high_water && owner != SeqId{-1} && owner != rows[i].seq) coverage_->count("hole reused");
    owner = rows[i].seq;
  }
}

void WatchedEngine::share(SeqId from, SeqId to, Position end) {
  std::vector<TokenId> tokens = fake_.tokens(from);
  SIM_EXPECT(0 < end && end <= static_cast<Position>(tokens.size()), "more was handed on than was computed");
  tokens.resize(static_cast<std::size_t>(end));
  handed_on_.insert(std::move(tokens));
  coverage_->count("prefix found");
  fake_.share(from, to, end);
}

Result<Page> WatchedEngine::export_page(SeqId seq, Position begin, Position end) {
  Result<Page> page = fake_.export_page(seq, begin, end);
  if (!page || plant_ != Plant::kPageOfAnother) return page;
  return first_pages_.emplace(std::pair(begin, end), *page).first->second;
}

bool WatchedEngine::handed_on(std::span<const TokenId> prefix) const {
  return handed_on_.contains(std::vector<TokenId>(prefix.begin(), prefix.end()));
}

}  // namespace fermata::sim
