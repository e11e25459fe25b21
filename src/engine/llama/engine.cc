#include "engine/llama/engine.h"

#include <algorithm>
#include <exception>

#include "base/check.h"
#include "engine/llama/llama_log.h"
#include "ggml-cpu.h"
#include "llama.h"

namespace fermata {
namespace {

// The result of llama_decode.
constexpr int kDecoded = 0;
constexpr int kNoSlot = 1;
constexpr int kDecodeAborted = 2;
constexpr int kThrew = -1000;  // ours: an exception came out

llama_seq_id id(SeqId seq) { return raw(seq); }

}  // namespace

LlamaEngine::~LlamaEngine() {
  context_.reset();
  if (pool_of_threads_ != nullptr) ggml_threadpool_free(pool_of_threads_);
}

bool LlamaEngine::abort_is_raised(void* engine) {
  const AbortFlag* abort = static_cast<LlamaEngine*>(engine)->abort_;
  return abort != nullptr && abort->raised();
}

void LlamaEngine::check_rows(std::span<const Row> rows) const {
  FERMATA_CHECK(!rows.empty());
  FERMATA_CHECK_LE(rows.size(), static_cast<std::size_t>(options_.n_rows_max));
  std::vector<Position> next(static_cast<std::size_t>(ledger_->n_seqs()), -1);
  std::int32_t n_wanted = 0;
  for (const Row& row : rows) {
    n_wanted += row.wants_logits ? 1 : 0;
    FERMATA_CHECK(vocabulary_->contains(row.token));
    FERMATA_CHECK(raw(row.seq) >= 0 && raw(row.seq) < ledger_->n_seqs());
    Position& expected = next[static_cast<std::size_t>(raw(row.seq))];
    if (expected < 0) expected = ledger_->length(row.seq);
    FERMATA_CHECK_EQ(row.position, expected);
    ++expected;
  }
  FERMATA_CHECK_LE(n_wanted, n_outputs_max());
}

Result<StepStatus> LlamaEngine::step(std::span<const Row> rows, const AbortFlag* abort) {
  check_rows(rows);
  const auto predicted = ledger_->find_slot(static_cast<std::uint32_t>(rows.size()));
  if (!predicted)
    return Error{Code::kNoCells, "the KV pool has no room for this step",
                 std::to_string(rows.size()) + " rows, " + std::to_string(ledger_->n_free()) + " free cells", true};
  std::ranges::copy(ledger_->positions(), table_.begin());
  placements_.clear();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    table_[raw((*predicted)[i])] = rows[i].position;
    placements_.push_back({rows[i].seq, rows[i].position});
  }
  attention_table_.update(table_);
  watch_.begin(*predicted, rows, table_, options_.audit_masks);
  abort_ = abort;
  std::string thrown;
  const int rc = decode(rows, thrown);
  abort_ = nullptr;
  return settle(rc, rows, *predicted, thrown);
}

int LlamaEngine::decode(std::span<const Row> rows, std::string& thrown) {
  const std::size_t n = rows.size();
  std::vector<llama_token> tokens(n);
  std::vector<llama_pos> positions(n);
  std::vector<std::int32_t> n_owners(n, 1);
  std::vector<llama_seq_id> owners(n);
  std::vector<llama_seq_id*> owner_lists(n);
  std::vector<std::int8_t> wants(n);
  for (std::size_t i = 0; i < n; ++i) {
    tokens[i] = raw(rows[i].token);
    positions[i] = rows[i].position;
    owners[i] = id(rows[i].seq);
    owner_lists[i] = &owners[i];
    wants[i] = rows[i].wants_logits ? 1 : 0;
  }
  llama_batch batch{};
  batch.n_tokens = static_cast<std::int32_t>(n);
  batch.token = tokens.data();
  batch.pos = positions.data();
  batch.n_seq_id = n_owners.data();
  batch.seq_id = owner_lists.data();
  batch.logits = wants.data();
  LlamaLog::clear();
  try {
    return llama_decode(context_.get(), batch);
  } catch (const std::exception& error) {
    thrown = error.what();
    return kThrew;
  }
}

// Makes the ledger say what the pool holds now.
Result<StepStatus> LlamaEngine::settle(int rc, std::span<const Row> rows, std::span<const CellIndex> predicted,
                                       const std::string& thrown) {
  const bool applied = !watch_.written().empty();
  const std::span<const CellIndex> cells = applied ? watch_.written() : predicted;
  if (applied && !std::ranges::equal(cells, predicted)) ++n_mispredictions_;
  logits_.assign(rows.size(), nullptr);
  if (rc == kDecoded) {
    ledger_->place(cells, placements_);
    check_agrees(rows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!rows[i].wants_logits) continue;
      logits_[i] = llama_get_logits_ith(context_.get(), static_cast<std::int32_t>(i));
      FERMATA_CHECK(logits_[i] != nullptr);
    }
    if (options_.audit_masks) audit_masks(rows);
    return StepStatus::kDone;
  }
  if (rc == kNoSlot) {  // the ledger saw room: it was wrong, but nothing was touched
    ++n_mispredictions_;
    return Error{Code::kNoCells, "the KV pool has no room for this step", LlamaLog::recent(), true};
  }
  // An exception may have left the rows placed; libllama itself takes them back in all other cases.
  if (rc == kThrew)
    for (const Row& row : rows)
      llama_memory_seq_rm(llama_get_memory(context_.get()), id(row.seq), ledger_->length(row.seq), -1);
  if (applied || rc == kDecodeAborted) take_back(rows, cells);
  check_agrees(rows);
  if (rc == kDecodeAborted) return StepStatus::kAborted;
  std::string detail = "llama_decode gave " + std::to_string(rc) + "; " + LlamaLog::recent();
  if (!thrown.empty()) detail += "; " + thrown;
  return Error{Code::kEngine, "the engine failed to compute a step; its rows are lost, the pool is as before", detail,
               true};
}

// libllama placed the rows, which moved its head behind them, and then freed them, sequence by sequence, which moved it
// back to the lowest of their cells. The same moves here keep both heads equal.
void LlamaEngine::take_back(std::span<const Row> rows, std::span<const CellIndex> cells) {
  ledger_->place(cells, placements_);
  for (const Row& row : rows)
    if (row.position < ledger_->length(row.seq)) ledger_->trim(row.seq, row.position);
}

void LlamaEngine::check_agrees(std::span<const Row> rows) const {
  for (const Row& row : rows) FERMATA_CHECK_EQ(last_position_inside(row.seq), ledger_->length(row.seq) - 1);
}

void LlamaEngine::audit_masks(std::span<const Row> rows) {
  FERMATA_CHECK_EQ(watch_.seen().size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto own = ledger_->cells_of(rows[i].seq);
    std::vector<CellIndex> expected(own.begin(), own.begin() + rows[i].position + 1);
    std::ranges::sort(expected);
    FERMATA_CHECK(expected == watch_.seen()[i]);
  }
}

Position LlamaEngine::last_position_inside(SeqId seq) const {
  return llama_memory_seq_pos_max(llama_get_memory(context_.get()), id(seq));
}

std::span<const float> LlamaEngine::logits(std::size_t row) const {
  FERMATA_CHECK_LT(row, logits_.size());
  FERMATA_CHECK(logits_[row] != nullptr);
  return {logits_[row], static_cast<std::size_t>(info_.n_vocab)};
}

void LlamaEngine::share(SeqId from, SeqId to, Position end) {
  ledger_->share(from, to, end);  // checks the call first
  llama_memory_seq_cp(llama_get_memory(context_.get()), id(from), id(to), 0, end);
}

void LlamaEngine::trim(SeqId seq, Position begin) {
  ledger_->trim(seq, begin);
  FERMATA_CHECK(llama_memory_seq_rm(llama_get_memory(context_.get()), id(seq), begin, -1));
}

Result<Page> LlamaEngine::export_page(SeqId seq, Position begin, Position end) {
  if (begin < 0 || end <= begin || end - begin > limits::kPageTokens || end > ledger_->length(seq))
    return Error{
        Code::kInvalidArgument, "a page holds 1 to " + std::to_string(limits::kPageTokens) + " computed positions",
        std::to_string(begin) + " to " + std::to_string(end) + " of " + std::to_string(ledger_->length(seq)), false};
  const auto n = static_cast<std::size_t>(end - begin);
  std::vector<std::byte> blob(layout_.blob_bytes(n));
  llama_memory_t memory = llama_get_memory(context_.get());
  llama_memory_seq_cp(memory, id(seq), id(scratch()), begin, end);
  const std::size_t written = llama_state_seq_get_data(context_.get(), reinterpret_cast<std::uint8_t*>(blob.data()),
                                                       blob.size(), id(scratch()));
  llama_memory_seq_rm(memory, id(scratch()), -1, -1);
  Page page{begin, end, {}};
  page.bytes.reserve(kPageHeaderBytes + layout_.body_bytes(n));
  page.bytes.resize(kPageHeaderBytes);
  if (written != blob.size() || !layout_.blob_to_body(blob, begin, end, page.bytes))
    return Error{Code::kEngine, "the engine could not copy a page out of its pool", LlamaLog::recent(), false};
  seal_page(page, fingerprint_.hex);
  return page;
}

Result<void> LlamaEngine::import_page(SeqId seq, const Page& page) {
  auto body = open_page(page, fingerprint_.hex, layout_);
  if (!body) return body.error();
  if (page.begin != ledger_->length(seq))
    return Error{Code::kInvalidArgument, "the page does not begin where the sequence ends",
                 std::to_string(page.begin) + ", not " + std::to_string(ledger_->length(seq)), false};
  const auto n = static_cast<std::uint32_t>(page.end - page.begin);
  const auto cells = ledger_->find_slot(n);
  if (!cells)
    return Error{Code::kNoCells, "the KV pool has no room for this page",
                 std::to_string(n) + " positions, " + std::to_string(ledger_->n_free()) + " free cells", true};
  const auto blob = layout_.body_to_blob(*body, page.begin, page.end, scratch());
  llama_memory_t memory = llama_get_memory(context_.get());
  const std::size_t taken = llama_state_seq_set_data(context_.get(), reinterpret_cast<const std::uint8_t*>(blob.data()),
                                                     blob.size(), id(scratch()));
  const bool whole = taken == blob.size() && last_position_inside(scratch()) == page.end - 1 &&
                     llama_memory_seq_pos_min(memory, id(scratch())) == page.begin;
  if (whole) llama_memory_seq_cp(memory, id(scratch()), id(seq), page.begin, page.end);
  llama_memory_seq_rm(memory, id(scratch()), -1, -1);
  if (!whole)
    return Error{Code::kEngine, "the engine could not take a page into its pool; the pool is unchanged",
                 LlamaLog::recent(), false};
  placements_.clear();
  for (Position position = page.begin; position < page.end; ++position) placements_.push_back({seq, position});
  ledger_->place(*cells, placements_);
  FERMATA_CHECK_EQ(last_position_inside(seq), page.end - 1);
  return {};
}

// libllama keeps a row of logits for every sequence id, and insists that its own limit covers them.
std::int32_t LlamaEngine::n_outputs_max() const { return std::max(options_.n_sequences, limits::kDecodeRowsMax); }

std::string LlamaEngine::attention_in_use() const {
  return attention_is_ours_ ? "ours " + attention::instruction_set() : "ggml";
}

void LlamaEngine::use_threads(std::int32_t n) {
  FERMATA_CHECK(n >= 1 && n <= options_.n_threads);
  llama_set_n_threads(context_.get(), n, n);
}

std::uint64_t LlamaEngine::pool_bytes() const {
  return static_cast<std::uint64_t>(layout_.row_bytes()) * static_cast<std::uint64_t>(info_.n_cells);
}

}  // namespace fermata
