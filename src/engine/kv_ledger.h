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
// 0..n-1, each in one cell; counts agree; no cell below the head is free, so with the moves given here (others of
// libllama's would break it) a slot is always the lowest free cells. Owner: the engine thread (via its Engine).
//
// What mirrors what (llama-kv-cache.cpp, one stream, no sliding window):
//   llama_decode, rc 0       find_slot(rows), place()
//   llama_decode, rc 2, < -1 find_slot(rows), place(), then trim() of each of its sequences to its first row: the cells
//                            are as before, the head stands at the lowest cell of the slot
//   llama_decode, rc 1, -2   nothing, if it came before the first ubatch: preparing restores cells and head
//   llama_state_seq_set_data find_slot(cells), place(): the same search as for a step, in the order of the blob, which
//                            is the order of cells, not of positions (place() takes rows in any order)
//   llama_memory_seq_cp      share(): moves no head; a scratch sequence that never was a cell's last owner leaves no
//                            trace here
//   llama_memory_seq_rm      trim(): the head goes down to the lowest cell that became free, never up
//   llama_memory_clear       clear()
class KvLedger {
 public:
  using Owners = std::bitset<limits::kSequencesMax>;
  static constexpr Position kFree = -1;

  // 1 <= n_cells, 1 <= n_seqs <= limits::kSequencesMax.
  KvLedger(std::uint32_t n_cells, std::int32_t n_seqs);

  // --- reading
  std::uint32_t n_cells() const { return static_cast<std::uint32_t>(positions_.size()); }
  std::int32_t n_seqs() const { return static_cast<std::int32_t>(cells_of_.size()); }
  std::uint32_t n_used() const { return n_used_; }
  std::uint32_t n_free() const { return n_cells() - n_used_; }
  // Number of positions of a sequence; its next position.
  Position length(SeqId seq) const { return static_cast<Position>(cells_of(seq).size()); }
  // The cells of a sequence in position order: [length(seq)]. Valid until the next change of the ledger.
  std::span<const CellIndex> cells_of(SeqId seq) const;
  // Position per cell, kFree where free: [n_cells]. What attention sorts by.
  std::span<const Position> positions() const { return positions_; }
  const Owners& owners(CellIndex cell) const { return owners_[raw(cell)]; }
  // Cells that would become free if this sequence went away. O(1).
  std::uint32_t n_exclusive(SeqId seq) const;
  // [i]: cells that would become free if in_order[i] went away after all before it had. Their sum is what all of them
  // together hold for themselves. O(sum of their lengths): ask only when cells are short.
  std::vector<std::uint32_t> freed_by(std::span<const SeqId> in_order) const;
  // One more than the highest used cell: how many cells a step looks at. O(1).
  std::uint32_t high_water() const { return high_water_; }
  // Where libllama's next search begins: 0 .. n_cells.
  std::uint32_t head() const { return head_; }

  // --- the moves of libllama's unified cache
  // The cells that a step of n_rows (or a page of n_rows) would be written to, in row order, exactly as libllama's
  // find_slot chooses them: the first free ones from its head, which goes back to 0 when much is free before it.
  // Nothing if there is no room.
  std::optional<std::vector<CellIndex>> find_slot(std::uint32_t n_rows) const;
  struct Placement {
    SeqId seq{};
    Position position = 0;
  };
  // rows[i] was written to cells[i], which is free. The positions of each sequence are its next ones, in any order.
  // The head goes behind the last of the cells.
  void place(std::span<const CellIndex> cells, std::span<const Placement> rows);
  // `to` (empty before, not `from`) also owns the cells of `from` at positions [0, end).
  void share(SeqId from, SeqId to, Position end);
  // seq gives up its positions [begin, its end): nothing if begin is its end.
  void trim(SeqId seq, Position begin);
  // Everything is free; the head is 0.
  void clear();

  // Ends the process if an invariant is broken. O(cells + positions).
  void audit() const;

 private:
  void add_owner(CellIndex cell, SeqId seq);
  // True if the cell became free.
  bool drop_owner(CellIndex cell, SeqId seq);
  void check_seq(SeqId seq) const;
  void audit_sequences() const;

  std::vector<Position> positions_;               // [n_cells]
  std::vector<Owners> owners_;                    // [n_cells]
  std::vector<std::uint16_t> n_owners_;           // [n_cells]
  std::vector<std::uint16_t> owners_xor_;         // [n_cells]: of their ids; the owner itself where there is one
  std::vector<std::vector<CellIndex>> cells_of_;  // [n_seqs][length]
  std::vector<std::uint32_t> n_exclusive_;        // [n_seqs]
  std::uint32_t n_used_ = 0;
  std::uint32_t high_water_ = 0;
  std::uint32_t head_ = 0;
};

}  // namespace fermata
