#include "engine/fake/fake_engine.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "engine/fake/fake_hash.h"
#include "engine/fake/fake_page.h"
#include "engine/sampling/plain_sampler.h"

namespace fermata {

namespace {

std::string hex(std::uint64_t value) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[(value >> shift) & 15];
  return text;
}

Error no_cells(std::size_t n_wanted, std::uint32_t n_free) {
  return {Code::kNoCells, "the KV pool has no room for this",
          std::to_string(n_wanted) + " cells wanted, " + std::to_string(n_free) + " free", true};
}

// What a cell holds that nobody may read: never written, half written, or taken away too early.
FakeCell rubbish(CellIndex cell) { return {TokenId{0}, -1, mix(0xdead, raw(cell))}; }

}  // namespace

std::function<void(std::size_t)> take_time(ManualClock& clock, Duration per_step, Duration per_row) {
  return [&clock, per_step, per_row](std::size_t n_rows) {
    clock.advance({per_step.ns + per_row.ns * static_cast<std::int64_t>(n_rows)});
  };
}

FakeEngine::FakeEngine(FakeOptions options)
    : options_(std::move(options)),
      vocabulary_(std::make_shared<FakeVocabulary>()),
      ledger_(static_cast<std::uint32_t>(options_.n_cells), options_.n_seqs) {
  FERMATA_CHECK_LE(1, options_.n_rows_max);
  if (!options_.model) options_.model = hash_model(vocabulary_);
  if (!options_.samplers)
    options_.samplers = std::make_shared<PlainSamplerFactory>(vocabulary_->n_tokens(), vocabulary_->end());
  for (std::uint32_t c = 0; c < ledger_.n_cells(); ++c) cells_.push_back(rubbish(CellIndex{c}));
  info_.model_name = "fake";
  info_.fingerprint = hex(mix(0x66616b65, options_.weights));
  info_.n_vocab = vocabulary_->n_tokens();
  info_.n_cells = options_.n_cells;
  info_.n_ctx_train = options_.n_ctx_train;
  info_.n_rows_max = options_.n_rows_max;
  info_.exactness = {true, true, "the fake engine computes with integers, row by row"};
}

Result<StepStatus> FakeEngine::step(std::span<const Row> rows, const AbortFlag* abort) {
  FERMATA_CHECK_LE(std::size_t{1}, rows.size());
  FERMATA_CHECK_LE(rows.size(), static_cast<std::size_t>(options_.n_rows_max));
  for (const Row& row : rows) FERMATA_CHECK(vocabulary_->contains(row.token));
  logits_.clear();
  const bool fails = has_fault(FakeFault::Kind::kFails);
  const bool has_no_cells = has_fault(FakeFault::Kind::kNoCells);
  const bool aborts = has_fault(FakeFault::Kind::kAborts);
  ++n_steps_;

  const auto slot = ledger_.find_slot(static_cast<std::uint32_t>(rows.size()));
  if (!slot || has_no_cells) return no_cells(rows.size(), ledger_.n_free());
  std::vector<KvLedger::Placement> placements;
  for (const Row& row : rows) {
    // Rows of one sequence stand in position order, each the next of it.
    const auto n_before = static_cast<Position>(std::count_if(
        placements.begin(), placements.end(), [&](const KvLedger::Placement& p) { return p.seq == row.seq; }));
    FERMATA_CHECK_EQ(row.position, ledger_.length(row.seq) + n_before);
    placements.push_back({row.seq, row.position});
  }
  ledger_.place(*slot, placements);

  const bool done = compute(rows, *slot, abort);
  if (done && !aborts && !fails) {
    n_rows_ += rows.size();
    return StepStatus::kDone;
  }
  take_back(rows);
  logits_.clear();
  if (done && fails)
    return Error{Code::kEngine, "the engine failed (scripted)", "step " + std::to_string(n_steps_ - 1)};
  ++n_aborted_;
  return StepStatus::kAborted;
}

bool FakeEngine::has_fault(FakeFault::Kind kind) const {
  return std::any_of(options_.faults.begin(), options_.faults.end(), [&](const FakeFault& fault) {
    return fault.kind == kind && n_steps_ >= fault.at_step && n_steps_ - fault.at_step < fault.n_steps;
  });
}

// False if the flag was raised. By then the cells hold rubbish, as those of a forward pass that was left halfway.
bool FakeEngine::compute(std::span<const Row> rows, std::span<const CellIndex> cells, const AbortFlag* abort) {
  for (const CellIndex cell : cells) cells_[raw(cell)] = rubbish(cell);
  for (std::int32_t poll = 0; poll < options_.n_polls; ++poll) {
    if (options_.on_poll) options_.on_poll(poll);
    if (abort != nullptr && abort->raised()) return false;
  }
  logits_.resize(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) compute_row(rows[i], cells[i], logits_[i]);
  if (options_.on_compute) options_.on_compute(rows.size());
  return true;
}

void FakeEngine::compute_row(const Row& row, CellIndex cell, std::vector<float>& logits) {
  std::uint64_t digest = mix(static_cast<std::uint64_t>(raw(row.token)), static_cast<std::uint64_t>(row.position));
  if (row.position > 0) {
    const CellIndex before = ledger_.cells_of(row.seq)[static_cast<std::size_t>(row.position - 1)];
    digest = mix(cells_[raw(before)].digest, digest);
  }
  cells_[raw(cell)] = {row.token, row.position, digest};
  if (!row.wants_logits) return;
  logits.resize(static_cast<std::size_t>(info_.n_vocab));
  options_.model(read(row.seq, row.position + 1), logits);
}

// After a step that was not finished: as libllama, which drops what stands at or after the first row of each sequence.
void FakeEngine::take_back(std::span<const Row> rows) {
  for (const Row& row : rows) {
    if (ledger_.length(row.seq) <= row.position) continue;  // went with an earlier row of its sequence
    ledger_.trim(row.seq, row.position);
    if (options_.bug == PlantedBug::kAbortSpoilsCells && row.position > 0) {
      const CellIndex last = ledger_.cells_of(row.seq).back();
      cells_[raw(last)] = rubbish(last);
    }
  }
}

// The cells of positions [0, end) of a sequence, in the order in which a row reads them.
std::vector<FakeCell> FakeEngine::read(SeqId seq, Position end) const {
  const auto all = ledger_.cells_of(seq).first(static_cast<std::size_t>(end));
  std::vector<CellIndex> order(all.begin(), all.end());
  if (options_.bug == PlantedBug::kCellsOutOfOrder) std::sort(order.begin(), order.end());
  std::vector<FakeCell> cells;
  cells.reserve(order.size());
  for (const CellIndex cell : order) cells.push_back(cells_[raw(cell)]);
  return cells;
}

std::span<const float> FakeEngine::logits(std::size_t row) const {
  FERMATA_CHECK_LT(row, logits_.size());
  FERMATA_CHECK(!logits_[row].empty());
  if (options_.bug == PlantedBug::kLogitsRowLost) {
    for (std::size_t before = row; before > 0; --before)
      if (!logits_[before - 1].empty()) return logits_[before - 1];
  }
  return logits_[row];
}

void FakeEngine::trim(SeqId seq, Position begin) {
  if (options_.bug == PlantedBug::kSharedCellFreedEarly) {
    for (const CellIndex cell : ledger_.cells_of(seq).subspan(static_cast<std::size_t>(begin)))
      cells_[raw(cell)] = rubbish(cell);
  }
  ledger_.trim(seq, begin);
}

Result<Page> FakeEngine::export_page(SeqId seq, Position begin, Position end) {
  if (begin < 0 || begin >= end || end - begin > limits::kPageTokens || end > ledger_.length(seq))
    return Error{Code::kInvalidArgument, "a page has 1 to " + std::to_string(limits::kPageTokens) + " present tokens",
                 std::to_string(begin) + " .. " + std::to_string(end) + " of " + std::to_string(ledger_.length(seq))};
  std::vector<FakeCell> cells;
  for (Position p = begin; p < end; ++p)
    cells.push_back(cells_[raw(ledger_.cells_of(seq)[static_cast<std::size_t>(p)])]);
  return Page{begin, end, seal_fake_page(options_.weights, begin, cells)};
}

Result<void> FakeEngine::import_page(SeqId seq, const Page& page) {
  const Result<std::vector<FakeCell>> cells = open_fake_page(options_.weights, page);
  if (!cells) return cells.error();
  if (page.begin != ledger_.length(seq))
    return Error{Code::kInvalidArgument, "the page does not continue the sequence",
                 "page at " + std::to_string(page.begin) + ", sequence ends at " + std::to_string(ledger_.length(seq))};
  const auto slot = ledger_.find_slot(static_cast<std::uint32_t>(cells->size()));
  if (!slot) return no_cells(cells->size(), ledger_.n_free());
  std::vector<KvLedger::Placement> placements;
  for (const FakeCell& cell : *cells) placements.push_back({seq, cell.position});
  ledger_.place(*slot, placements);
  for (std::size_t i = 0; i < cells->size(); ++i) cells_[raw((*slot)[i])] = (*cells)[i];
  return {};
}

std::vector<TokenId> FakeEngine::tokens(SeqId seq) const {
  std::vector<TokenId> tokens;
  for (const CellIndex cell : ledger_.cells_of(seq)) tokens.push_back(cells_[raw(cell)].token);
  return tokens;
}

}  // namespace fermata
