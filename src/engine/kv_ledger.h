#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/limits.h"

namespace fermata {

// Bookkeeping of a KV pool: which cell holds which position, and which sequences own it. Pure; it knows nothing of keys
// and values. libllama keeps the same books inside and does not show them, so the engine mirrors them here, predicts
// with find_slot() which cells a step will write, and checks the prediction against what libllama wrote.
//
//   cell       0    1    2    3    4    5    6    7
//   position  [0]  [1]  [2]   .   [0]  [1]  [3]  [2]      . = free
//   owners     A,B  A,B  A        C    C    A    C        A and B share a prefix; A's cells are not in order
//
// Invariants, all checked by audit(): a cell has a position exactly when it has an owner; a sequence's positions are
// 0..n-1, each in one cell; counts agree. Owner: the engine thread (via its Engine).
class KvLedger {
 public:
  using Owners = std::bitset<limits::kSequencesMax>;
  static constexpr Position kFree = -1;

  KvLedger(std::uint32_t n_cells, std::int32_t n_seqs);

  // --- reading
  std::uint32_t n_cells() const { return static_cast<std::uint32_t>(positions_.size()); }
  std::int32_t n_seqs() const { return static_cast<std::int32_t>(cells_of_.size()); }
  std::uint32_t n_used() const { return n_used_; }
  std::uint32_t n_free() const { return n_cells() - n_used_; }
  // Number of positions of a sequence; its next position.
  Position length(SeqId seq) const;
  // The cells of a sequence in position order: [length(seq)].
  std::span<const CellIndex> cells_of(SeqId seq) const;
  // Position per cell, kFree where free: [n_cells]. What attention sorts by.
  std::span<const Position> positions() const { return positions_; }
  const Owners& owners(CellIndex cell) const { return owners_[raw(cell)]; }
  // Cells that would become free if this sequence went away.
  std::uint32_t n_exclusive(SeqId seq) const;
  // One more than the highest used cell: how many cells a step looks at.
  std::uint32_t high_water() const;

  // --- the moves of libllama's unified cache
  // The cells that a step of n_rows would be written to, in row order, exactly as libllama's find_slot chooses them
  // (from its head, first free ones, the head back to 0 when much is free before it). Nothing if there is no room.
  std::optional<std::vector<CellIndex>> find_slot(std::uint32_t n_rows) const;
  struct Placement {
    SeqId seq{};
    Position position = 0;
  };
  // Rows were written to these cells (which are free). Each position is the next of its sequence. Moves the head.
  void place(std::span<const CellIndex> cells, std::span<const Placement> rows);
  void share(SeqId from, SeqId to, Position end);
  void trim(SeqId seq, Position begin);

  // Ends the process if an invariant is broken. O(cells + positions).
  void audit() const;

 private:
  void release(CellIndex cell, SeqId seq);

  std::vector<Position> positions_;               // [n_cells]
  std::vector<Owners> owners_;                    // [n_cells]
  std::vector<std::vector<CellIndex>> cells_of_;  // [n_seqs][length]
  std::uint32_t n_used_ = 0;
  std::uint32_t head_ = 0;  // where libllama's next search starts
};

}  // namespace fermata
