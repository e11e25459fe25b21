#include "engine/kv_ledger.h"

#include <algorithm>

#include "base/check.h"

namespace fermata {

namespace {

// A place in cells_of_ that place() has made but not yet filled.
constexpr CellIndex kNoCell{0xffffffff};

std::size_t index(SeqId seq) { return static_cast<std::size_t>(raw(seq)); }

}  // namespace

KvLedger::KvLedger(std::uint32_t n_cells, std::int32_t n_seqs)
    : positions_(n_cells, kFree),
      owners_(n_cells),
      n_owners_(n_cells, 0),
      owners_xor_(n_cells, 0),
      cells_of_(static_cast<std::size_t>(n_seqs)),
      n_exclusive_(static_cast<std::size_t>(n_seqs), 0) {
  FERMATA_CHECK_LE(1u, n_cells);
  FERMATA_CHECK_LE(1, n_seqs);
  FERMATA_CHECK_LE(n_seqs, limits::kSequencesMax);
}

void KvLedger::check_seq(SeqId seq) const {
  FERMATA_CHECK_LE(0, raw(seq));
  FERMATA_CHECK_LT(raw(seq), n_seqs());
}

std::span<const CellIndex> KvLedger::cells_of(SeqId seq) const {
  check_seq(seq);
  return cells_of_[index(seq)];
}

std::uint32_t KvLedger::n_exclusive(SeqId seq) const {
  check_seq(seq);
  return n_exclusive_[index(seq)];
}

std::vector<std::uint32_t> KvLedger::freed_by(std::span<const SeqId> in_order) const {
  std::vector<std::uint32_t> freed;
  freed.reserve(in_order.size());
  Owners gone;
  for (const SeqId seq : in_order) {
    check_seq(seq);
    FERMATA_CHECK(!gone.test(index(seq)));
    gone.set(index(seq));
    std::uint32_t n = 0;
    for (const CellIndex cell : cells_of_[index(seq)]) n += (owners_[raw(cell)] & ~gone).none() ? 1 : 0;
    freed.push_back(n);
  }
  return freed;
}

std::optional<std::vector<CellIndex>> KvLedger::find_slot(std::uint32_t n_rows) const {
  FERMATA_CHECK_LE(1u, n_rows);
  if (n_rows > n_free()) return std::nullopt;
  // libllama counts with 2 * n_rows in 32 bits as well; n_rows <= n_cells keeps both far from wrapping.
  std::uint32_t cell = head_ > n_used_ + 2 * n_rows ? 0 : head_;
  std::vector<CellIndex> slot;
  slot.reserve(n_rows);
  // Enough cells are free, so at most one turn around the pool finds them.
  for (; slot.size() < n_rows; ++cell) {
    if (cell >= n_cells()) cell = 0;
    if (positions_[cell] == kFree) slot.push_back(CellIndex{cell});
  }
  return slot;
}

void KvLedger::place(std::span<const CellIndex> cells, std::span<const Placement> rows) {
  FERMATA_CHECK_LE(std::size_t{1}, rows.size());
  FERMATA_CHECK_EQ(cells.size(), rows.size());
  for (const Placement& row : rows) {
    check_seq(row.seq);
    cells_of_[index(row.seq)].push_back(kNoCell);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto [seq, position] = rows[i];
    FERMATA_CHECK_LT(raw(cells[i]), n_cells());
    FERMATA_CHECK_EQ(positions_[raw(cells[i])], kFree);
    FERMATA_CHECK_LE(0, position);
    FERMATA_CHECK_LT(position, length(seq));
    CellIndex& cell_of_position = cells_of_[index(seq)][static_cast<std::size_t>(position)];
    FERMATA_CHECK_EQ(cell_of_position, kNoCell);  // else the position was there before, or comes twice
    cell_of_position = cells[i];
    positions_[raw(cells[i])] = position;
    ++n_used_;
    high_water_ = std::max(high_water_, raw(cells[i]) + 1);
    add_owner(cells[i], seq);
  }
  head_ = raw(cells.back()) + 1;
}

void KvLedger::share(SeqId from, SeqId to, Position end) {
  check_seq(from);
  check_seq(to);
  FERMATA_CHECK(from != to);
  FERMATA_CHECK_LE(0, end);
  FERMATA_CHECK_LE(end, length(from));
  FERMATA_CHECK_EQ(length(to), 0);
  const auto& source = cells_of_[index(from)];
  auto& target = cells_of_[index(to)];
  target.assign(source.begin(), source.begin() + end);
  for (const CellIndex cell : target) add_owner(cell, to);
}

void KvLedger::trim(SeqId seq, Position begin) {
  check_seq(seq);
  FERMATA_CHECK_LE(0, begin);
  FERMATA_CHECK_LE(begin, length(seq));
  auto& cells = cells_of_[index(seq)];
  for (auto cell = cells.begin() + begin; cell != cells.end(); ++cell) {
    if (drop_owner(*cell, seq)) head_ = std::min(head_, raw(*cell));
  }
  cells.resize(static_cast<std::size_t>(begin));
  // Paid for by the places that raised it.
  while (high_water_ > 0 && positions_[high_water_ - 1] == kFree) --high_water_;
}

void KvLedger::clear() { *this = KvLedger(n_cells(), n_seqs()); }

void KvLedger::add_owner(CellIndex cell, SeqId seq) {
  const std::uint32_t c = raw(cell);
  FERMATA_CHECK(!owners_[c].test(index(seq)));
  if (n_owners_[c] == 0) ++n_exclusive_[index(seq)];
  if (n_owners_[c] == 1) --n_exclusive_[owners_xor_[c]];
  owners_[c].set(index(seq));
  ++n_owners_[c];
  owners_xor_[c] = static_cast<std::uint16_t>(owners_xor_[c] ^ raw(seq));
}

bool KvLedger::drop_owner(CellIndex cell, SeqId seq) {
  const std::uint32_t c = raw(cell);
  FERMATA_CHECK(owners_[c].test(index(seq)));
  owners_[c].reset(index(seq));
  --n_owners_[c];
  owners_xor_[c] = static_cast<std::uint16_t>(owners_xor_[c] ^ raw(seq));
  if (n_owners_[c] == 1) ++n_exclusive_[owners_xor_[c]];
  if (n_owners_[c] > 0) return false;
  --n_exclusive_[index(seq)];
  positions_[c] = kFree;
  --n_used_;
  return true;
}

void KvLedger::audit() const {
  std::uint32_t n_used = 0;
  std::uint32_t high_water = 0;
  for (std::uint32_t c = 0; c < n_cells(); ++c) {
    FERMATA_CHECK(positions_[c] != kFree || c >= head_);
    FERMATA_CHECK_EQ(owners_[c].count(), std::size_t{n_owners_[c]});
    FERMATA_CHECK_EQ(positions_[c] == kFree, n_owners_[c] == 0);
    if (positions_[c] == kFree) continue;
    FERMATA_CHECK_LE(0, positions_[c]);
    ++n_used;
    high_water = c + 1;
  }
  FERMATA_CHECK_EQ(n_used, n_used_);
  FERMATA_CHECK_EQ(high_water, high_water_);
  FERMATA_CHECK_LE(head_, n_cells());
  audit_sequences();
}

void KvLedger::audit_sequences() const {
  std::size_t n_owned = 0;
  for (std::int32_t s = 0; s < n_seqs(); ++s) {
    const auto& cells = cells_of_[static_cast<std::size_t>(s)];
    n_owned += cells.size();
    std::uint32_t n_exclusive = 0;
    for (std::size_t p = 0; p < cells.size(); ++p) {
      FERMATA_CHECK_LT(raw(cells[p]), n_cells());
      FERMATA_CHECK_EQ(positions_[raw(cells[p])], static_cast<Position>(p));
      FERMATA_CHECK(owners_[raw(cells[p])].test(static_cast<std::size_t>(s)));
      if (n_owners_[raw(cells[p])] != 1) continue;
      FERMATA_CHECK_EQ(std::int32_t{owners_xor_[raw(cells[p])]}, s);
      ++n_exclusive;
    }
    FERMATA_CHECK_EQ(n_exclusive, n_exclusive_[static_cast<std::size_t>(s)]);
  }
  std::size_t n_ownerships = 0;
  for (const std::uint16_t n : n_owners_) n_ownerships += n;
  FERMATA_CHECK_EQ(n_ownerships, n_owned);
}

}  // namespace fermata
