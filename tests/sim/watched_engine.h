#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "coverage.h"
#include "engine/fake/fake_engine.h"
#include "engine/forwarding_engine.h"
#include "plants.h"

namespace fermata::sim {

// A fake engine under the eyes of the simulation: what the loop asks of it is checked (contract 3, Private: a step is
// aborted only if it serves nothing but interrupted work, and never right after an aborted one) and counted.
class WatchedEngine final : public ForwardingEngine {
 public:
  // `options.on_poll` may call note_interrupt().
  WatchedEngine(FakeOptions options, Plant plant, Coverage& coverage);

  // An interrupt of this generation was posted; when a turn begins, those before it are handled.
  void note_interrupt(GenerationId id);
  void turn_begins();
  // The step in flight serves this one alone, so an interrupt of it must end the step.
  void only_one_lives(GenerationId id) { only_one_ = id; }

  // Whether the pool once handed on this prefix from computed cells.
  bool handed_on(std::span<const TokenId> prefix) const;
  bool in_step() const { return in_step_; }
  std::uint64_t n_steps() const { return fake_.n_steps(); }

  Result<StepStatus> step(std::span<const Row> rows, const AbortFlag* abort) override;
  void share(SeqId from, SeqId to, Position end) override;
  Result<Page> export_page(SeqId seq, Position begin, Position end) override;

 private:
  class PlantedFlag;
  bool engine_aborts_by_itself() const;
  void check_abort(std::size_t n_seqs, bool is_prefill);
  void check_done(std::size_t n_seqs);
  void count_holes(std::span<const CellIndex> written, std::span<const Row> rows, std::uint32_t high_water);

  FakeEngine fake_;
  std::vector<FakeFault> faults_;
  Plant plant_;
  Coverage* coverage_;
  std::set<GenerationId> interrupted_;      // in this turn
  std::set<GenerationId> interrupted_now_;  // during the step in flight
  GenerationId only_one_ = kNoGeneration;
  bool in_step_ = false;
  bool last_aborted_ = false;
  std::vector<SeqId> last_owner_;  // [n_cells] who wrote it last; -1: nobody
  std::set<std::vector<TokenId>> handed_on_;
  std::map<std::pair<Position, Position>, Page> first_pages_;  // for a plant
};

}  // namespace fermata::sim
