#include "engine/kv_ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace fermata {
namespace {

using Placement = KvLedger::Placement;

// libllama's cache as its source reads (llama-kv-cache.cpp, llama-kv-cells.h), as slow and as literal as can be: a map
// of cells, every search a walk over all of them. It shares no idea with the ledger but the meaning of the words.
struct ReferenceCache {
  explicit ReferenceCache(std::uint32_t n) : size(n) {}

  struct Cell {
    Position position = 0;
    std::set<int> seqs;
  };
  std::map<std::uint32_t, Cell> cells;  // used ones alone
  std::uint32_t size;
  std::uint32_t head = 0;

  // find_slot(ubatch, cont = false)
  std::optional<std::vector<CellIndex>> find_slot(std::uint32_t n_tokens) const {
    std::uint32_t head_cur = head;
    if (head_cur > cells.size() + 2 * n_tokens) head_cur = 0;
    if (n_tokens > size) return std::nullopt;
    std::vector<CellIndex> idxs;
    std::uint32_t n_tested = 0;
    while (true) {
      if (head_cur + 1 > size) {
        n_tested += size - head_cur;
        head_cur = 0;
        continue;
      }
      const std::uint32_t idx = head_cur++;
      ++n_tested;
      if (!cells.contains(idx)) idxs.push_back(CellIndex{idx});
      if (idxs.size() == n_tokens) return idxs;
      if (n_tested >= size) return std::nullopt;
    }
  }
  void apply_ubatch(const std::vector<CellIndex>& idxs, const std::vector<Placement>& rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) cells[raw(idxs[i])] = {rows[i].position, {raw(rows[i].seq)}};
    head = raw(idxs.back()) + 1;
  }
  void seq_rm(int seq, Position p0) {
    std::uint32_t new_head = size;
    for (std::uint32_t i = 0; i < size; ++i) {
      const auto cell = cells.find(i);
      if (cell == cells.end() || cell->second.position < p0) continue;
      if (cell->second.seqs.erase(seq) == 0 || !cell->second.seqs.empty()) continue;
      cells.erase(cell);
      if (new_head == size) new_head = i;
    }
    if (new_head != size && new_head < head) head = new_head;
  }
  void seq_cp(int from, int to, Position p1) {
    for (auto& [i, cell] : cells)
      if (cell.position < p1 && cell.seqs.contains(from)) cell.seqs.insert(to);
  }

  Position length(int seq) const {
    return static_cast<Position>(
        std::count_if(cells.begin(), cells.end(), [&](const auto& cell) { return cell.second.seqs.contains(seq); }));
  }
  std::uint32_t n_freed(const std::set<int>& gone, int last) const {
    return static_cast<std::uint32_t>(std::count_if(cells.begin(), cells.end(), [&](const auto& cell) {
      const auto& seqs = cell.second.seqs;
      return seqs.contains(last) && std::includes(gone.begin(), gone.end(), seqs.begin(), seqs.end());
    }));
  }
};

void expect_equal(const KvLedger& ledger, const ReferenceCache& reference) {
  ASSERT_EQ(ledger.head(), reference.head);
  ASSERT_EQ(ledger.n_used(), reference.cells.size());
  ASSERT_EQ(ledger.high_water(), reference.cells.empty() ? 0 : reference.cells.rbegin()->first + 1);
  for (std::uint32_t i = 0; i < ledger.n_cells(); ++i) {
    const auto cell = reference.cells.find(i);
    ASSERT_EQ(ledger.positions()[i], cell == reference.cells.end() ? KvLedger::kFree : cell->second.position);
    std::set<int> owners;
    for (int s = 0; s < ledger.n_seqs(); ++s)
      if (ledger.owners(CellIndex{i}).test(static_cast<std::size_t>(s))) owners.insert(s);
    ASSERT_EQ(owners, cell == reference.cells.end() ? std::set<int>{} : cell->second.seqs) << "cell " << i;
  }
  std::vector<SeqId> order;
  std::vector<std::uint32_t> freed;
  std::set<int> gone;
  for (int s = ledger.n_seqs() - 1; s >= 0; --s) {
    ASSERT_EQ(ledger.length(SeqId{s}), reference.length(s));
    ASSERT_EQ(ledger.n_exclusive(SeqId{s}), reference.n_freed({s}, s));
    gone.insert(s);
    order.push_back(SeqId{s});
    freed.push_back(reference.n_freed(gone, s));
  }
  ASSERT_EQ(ledger.freed_by(order), freed);
}

// A random life of a pool, told to both.
class Program {
 public:
  explicit Program(std::uint64_t seed)
      : random_(seed),
        n_seqs_(1 + draw(6)),
        ledger_(static_cast<std::uint32_t>(1 + draw(60)), n_seqs_),
        reference_(ledger_.n_cells()) {}

  void run(int n_moves) {
    for (int i = 0; i < n_moves; ++i) {
      move();
      ledger_.audit();
      ASSERT_NO_FATAL_FAILURE(expect_equal(ledger_, reference_)) << "after move " << i;
    }
  }
  static inline int n_holes_filled = 0, n_refused = 0, n_shared_kept = 0;

 private:
  int draw(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  SeqId any_seq() { return SeqId{draw(n_seqs_)}; }
  Position any_position(SeqId seq) { return draw(ledger_.length(seq) + 1); }

  void move() {
    switch (draw(8)) {
      case 0:
      case 1:
      case 2: return step(draw(2) == 0);
      case 3: return page();
      case 4: return share();
      case 5:
      case 6: return trim(any_seq());
      default:
        if (draw(20) != 0) return trim(any_seq());
        ledger_.clear();
        reference_.cells.clear();
        reference_.head = 0;
    }
  }

  // Rows of several sequences, interleaved; an aborted one is taken back as llama_decode does.
  void step(bool is_aborted) {
    std::vector<Placement> rows(static_cast<std::size_t>(1 + draw(8)));
    std::map<SeqId, Position> begin;
    std::map<SeqId, Position> next;
    for (Placement& row : rows) {
      row.seq = any_seq();
      begin.try_emplace(row.seq, ledger_.length(row.seq));
      row.position = next.try_emplace(row.seq, ledger_.length(row.seq)).first->second++;
    }
    if (!place(rows) || !is_aborted) return;
    for (const auto& [seq, position] : begin) {
      ledger_.trim(seq, position);
      reference_.seq_rm(raw(seq), position);
    }
  }

  // A page comes in, in the order in which its cells lay elsewhere.
  void page() {
    const SeqId seq = any_seq();
    std::vector<Placement> rows(static_cast<std::size_t>(1 + draw(10)));
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = {seq, ledger_.length(seq) + static_cast<Position>(i)};
    std::shuffle(rows.begin(), rows.end(), random_);
    place(rows);
  }

  bool place(const std::vector<Placement>& rows) {
    const auto slot = ledger_.find_slot(static_cast<std::uint32_t>(rows.size()));
    EXPECT_EQ(slot, reference_.find_slot(static_cast<std::uint32_t>(rows.size())));
    if (!slot) {
      ++n_refused;
      return false;
    }
    n_holes_filled += raw(slot->front()) < ledger_.high_water();
    ledger_.place(*slot, rows);
    reference_.apply_ubatch(*slot, rows);
    return true;
  }

  void share() {
    const SeqId from = any_seq(), to = any_seq();
    if (from == to) return;
    trim_to(to, 0);
    const Position end = any_position(from);
    ledger_.share(from, to, end);
    reference_.seq_cp(raw(from), raw(to), end);
  }

  void trim(SeqId seq) { trim_to(seq, draw(3) == 0 ? 0 : any_position(seq)); }
  void trim_to(SeqId seq, Position begin) {
    const std::uint32_t n_used = ledger_.n_used();
    const Position n_given_up = ledger_.length(seq) - begin;
    ledger_.trim(seq, begin);
    reference_.seq_rm(raw(seq), begin);
    n_shared_kept += n_used - ledger_.n_used() < static_cast<std::uint32_t>(n_given_up);
  }

  std::mt19937_64 random_;
  int n_seqs_;
  KvLedger ledger_;
  ReferenceCache reference_;
};

TEST(KvLedger, MovesAsLibllamasCacheInRandomPrograms) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Program program(seed);
    ASSERT_NO_FATAL_FAILURE(program.run(40)) << "seed " << seed;
  }
  // The programs met what they are for.
  EXPECT_GT(Program::n_holes_filled, 1000);
  EXPECT_GT(Program::n_refused, 1000);
  EXPECT_GT(Program::n_shared_kept, 1000);
}

// seq's next n positions, in order, into the cells that find_slot names.
std::vector<std::uint32_t> grow(KvLedger& ledger, SeqId seq, Position n) {
  std::vector<Placement> rows;
  for (Position i = 0; i < n; ++i) rows.push_back({seq, ledger.length(seq) + i});
  const auto slot = ledger.find_slot(static_cast<std::uint32_t>(n)).value();
  ledger.place(slot, rows);
  std::vector<std::uint32_t> cells;
  for (const CellIndex cell : slot) cells.push_back(raw(cell));
  return cells;
}

TEST(KvLedger, HeadGoesBackToTheLowestFreedCell) {
  KvLedger ledger(32, 3);
  grow(ledger, SeqId{0}, 4);
  grow(ledger, SeqId{1}, 4);
  EXPECT_EQ(ledger.head(), 8u);
  ledger.trim(SeqId{0}, 2);
  EXPECT_EQ(ledger.head(), 2u);
  EXPECT_EQ(grow(ledger, SeqId{1}, 3), (std::vector<std::uint32_t>{2, 3, 8}));
  EXPECT_EQ(ledger.head(), 9u);
  ledger.trim(SeqId{1}, 6);  // cell 8: below the head, but not the lowest
  EXPECT_EQ(ledger.head(), 8u);
}

TEST(KvLedger, SharedCellStaysUntilItsLastOwnerGoes) {
  KvLedger ledger(16, 3);
  grow(ledger, SeqId{0}, 6);
  ledger.share(SeqId{0}, SeqId{1}, 4);
  EXPECT_EQ(ledger.n_exclusive(SeqId{0}), 2u);
  EXPECT_EQ(ledger.n_exclusive(SeqId{1}), 0u);
  ledger.trim(SeqId{0}, 0);
  EXPECT_EQ(ledger.n_used(), 4u);
  EXPECT_EQ(ledger.head(), 4u);
  EXPECT_EQ(ledger.n_exclusive(SeqId{1}), 4u);
  EXPECT_EQ(ledger.length(SeqId{1}), 4);
}

TEST(KvLedger, CellsThatCachedSequencesShareAreFreedWithTheLastOfThem) {
  KvLedger ledger(16, 3);
  grow(ledger, SeqId{0}, 4);
  ledger.share(SeqId{0}, SeqId{1}, 4);
  grow(ledger, SeqId{1}, 2);
  const std::vector<SeqId> order = {SeqId{0}, SeqId{1}};
  EXPECT_EQ(ledger.freed_by(order), (std::vector<std::uint32_t>{0, 6}));
}

TEST(KvLedger, AbortedStepLeavesCellsAsBeforeAndTheHeadAtItsSlot) {
  KvLedger ledger(16, 3);
  grow(ledger, SeqId{0}, 3);
  grow(ledger, SeqId{1}, 5);
  ledger.trim(SeqId{0}, 1);
  grow(ledger, SeqId{1}, 3);
  const std::vector<Position> before(ledger.positions().begin(), ledger.positions().end());
  const auto slot = ledger.find_slot(2).value();
  ledger.place(slot, std::vector<Placement>{{SeqId{0}, 1}, {SeqId{1}, 8}});
  ledger.trim(SeqId{0}, 1);
  ledger.trim(SeqId{1}, 8);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), ledger.positions().begin()));
  EXPECT_EQ(ledger.head(), raw(slot.front()));
}

TEST(KvLedgerDeath, RefusesWhatWouldBreakItsBooks) {
  KvLedger ledger(8, 2);
  grow(ledger, SeqId{0}, 2);
  const std::vector<CellIndex> taken = {CellIndex{1}}, free = {CellIndex{5}};
  EXPECT_DEATH(ledger.place(taken, std::vector<Placement>{{SeqId{1}, 0}}), "check failed");
  EXPECT_DEATH(ledger.place(free, std::vector<Placement>{{SeqId{0}, 3}}), "check failed");
  EXPECT_DEATH(ledger.place(free, std::vector<Placement>{{SeqId{0}, 1}}), "check failed");
  EXPECT_DEATH(ledger.share(SeqId{1}, SeqId{0}, 0), "check failed");
  EXPECT_DEATH(ledger.trim(SeqId{0}, 3), "check failed");
  EXPECT_DEATH(static_cast<void>(ledger.length(SeqId{2})), "check failed");
}

}  // namespace
}  // namespace fermata
