#include "engine/llama/row_invariance.h"

#include <gtest/gtest.h>

#include <optional>

namespace fermata {
namespace {

class ByteVocabulary final : public Vocabulary {
 public:
  std::int32_t n_tokens() const override { return 256; }
  std::string_view bytes(TokenId) const override { return {}; }
  bool ends_generation(TokenId) const override { return false; }
  bool is_control(TokenId) const override { return false; }
  std::vector<TokenId> tokenize(std::string_view, Markers) const override { return {}; }
  std::vector<TokenId> prompt_prefix() const override { return {}; }
};

class NoSamplers final : public SamplerFactory {
 public:
  Result<std::unique_ptr<Sampler>> make(const SamplingParams&) const override { return Error{}; }
};

enum class Flaw {
  kNone,
  kUnlikeEveryTime,  // not even repeatable
  kLoneRow,          // one row takes another path than two or more (llamafile's products)
  kEightRows,        // tiles from 8 rows on
  kManyRows,         // another path from 64 rows on (ggml's tiled attention)
  kThreads,          // sums split by thread
  kNeighbours,       // rows of another sequence in the step matter
  kCellOrder,        // sums in the order of cells
  kDeepLoneRow,      // one row beyond 512 cells is split among threads (ggml's flash attention)
};

// Logits are a sum over the tokens of a sequence; each flaw adds its own small error, as real kernels do.
class FlawedEngine final : public Engine {
 public:
  explicit FlawedEngine(Flaw flaw, std::int32_t n_cells = 1024)
      : flaw_(flaw), ledger_(static_cast<std::uint32_t>(n_cells), 16) {
    info_.n_vocab = 8;
    info_.n_cells = n_cells;
    info_.n_rows_max = 128;
  }
  const EngineInfo& info() const override { return info_; }
  const Vocabulary& vocabulary() const override { return vocabulary_; }
  const SamplerFactory& samplers() const override { return samplers_; }
  const KvLedger& ledger() const override { return ledger_; }

  Result<StepStatus> step(std::span<const Row> rows, const AbortFlag*) override {
    if (fails_after-- == 0) return Error{Code::kEngine, "planned", {}, false};
    const auto cells = ledger_.find_slot(static_cast<std::uint32_t>(rows.size()));
    if (!cells) return Error{Code::kNoCells, "full", {}, true};
    std::vector<KvLedger::Placement> placements;
    for (const Row& row : rows) placements.push_back({row.seq, row.position});
    ledger_.place(*cells, placements);
    values_.resize(ledger_.n_cells());
    for (std::size_t i = 0; i < rows.size(); ++i)
      values_[raw((*cells)[i])] = static_cast<float>(raw(rows[i].token)) / 7 + static_cast<float>(rows[i].position);
    logits_.clear();
    for (const Row& row : rows) logits_.push_back(compute(row, rows));
    return StepStatus::kDone;
  }
  std::span<const float> logits(std::size_t row) const override { return logits_[row]; }
  void share(SeqId from, SeqId to, Position end) override { ledger_.share(from, to, end); }
  void trim(SeqId seq, Position begin) override { ledger_.trim(seq, begin); }
  Result<Page> export_page(SeqId, Position, Position) override { return Error{}; }
  Result<void> import_page(SeqId, const Page&) override { return Error{}; }

  std::int32_t n_threads = 2;
  int fails_after = -1;

 private:
  bool errs(const Row& row, std::span<const Row> rows) {
    switch (flaw_) {
      case Flaw::kNone: return false;
      case Flaw::kUnlikeEveryTime: return ++n_steps_ > 0;
      case Flaw::kLoneRow: return rows.size() == 1;
      case Flaw::kEightRows: return rows.size() >= 8;
      case Flaw::kManyRows: return rows.size() >= 64;
      case Flaw::kThreads: return n_threads == 1;
      case Flaw::kNeighbours:
        for (const Row& other : rows)
          if (other.seq != row.seq) return true;
        return false;
      case Flaw::kCellOrder: {
        const auto own = ledger_.cells_of(row.seq);
        return !std::is_sorted(own.begin(), own.end());
      }
      case Flaw::kDeepLoneRow: return rows.size() == 1 && row.position >= 512;
    }
    return false;
  }
  std::vector<float> compute(const Row& row, std::span<const Row> rows) {
    float sum = 0;
    for (Position i = 0; i <= row.position; ++i)
      sum = sum * 0.99f + values_[raw(ledger_.cells_of(row.seq)[static_cast<std::size_t>(i)])];
    if (errs(row, rows)) sum *= 1.001f + 0.001f * static_cast<float>(n_steps_);
    std::vector<float> logits;
    for (int token = 0; token < info_.n_vocab; ++token) logits.push_back(sum * static_cast<float>(token));
    return logits;
  }

  Flaw flaw_;
  EngineInfo info_;
  ByteVocabulary vocabulary_;
  NoSamplers samplers_;
  KvLedger ledger_;
  std::vector<float> values_;
  std::vector<std::vector<float>> logits_;
  int n_steps_ = 0;
};

RowInvariance verdict_of(FlawedEngine& engine) {
  const RowInvarianceOptions options{3, [&](std::int32_t n) { engine.n_threads = n; }, 2};
  const auto verdict = test_row_invariance(engine, options);
  EXPECT_TRUE(verdict);
  EXPECT_EQ(engine.ledger().n_used(), 0u);
  EXPECT_EQ(engine.n_threads, 2);
  return *verdict;
}

TEST(RowInvariance, PassesAnEngineThatHasIt) {
  FlawedEngine engine(Flaw::kNone);
  const RowInvariance verdict = verdict_of(engine);
  EXPECT_TRUE(verdict.exactness.alone);
  EXPECT_TRUE(verdict.exactness.with_neighbours);
  EXPECT_EQ(verdict.largest_difference, 0);
  EXPECT_EQ(verdict.where, "");
}

TEST(RowInvariance, FindsEveryKindOfFlaw) {
  struct Case {
    Flaw flaw;
    const char* where;
  };
  for (const auto& [flaw, where] :
       {Case{Flaw::kLoneRow, "2 rows"}, Case{Flaw::kEightRows, "8 rows"}, Case{Flaw::kManyRows, "64 rows"},
        Case{Flaw::kThreads, "one thread"}, Case{Flaw::kNeighbours, "beside a neighbour"},
        Case{Flaw::kCellOrder, "holes"}, Case{Flaw::kDeepLoneRow, "at depth"}}) {
    FlawedEngine engine(flaw);
    const RowInvariance verdict = verdict_of(engine);
    EXPECT_TRUE(verdict.exactness.alone) << where;
    EXPECT_FALSE(verdict.exactness.with_neighbours) << where;
    EXPECT_NE(verdict.where.find(where), std::string::npos) << verdict.where;
    EXPECT_NE(verdict.exactness.why.find(verdict.where), std::string::npos);
    EXPECT_GT(verdict.largest_difference, 0);
  }
}

TEST(RowInvariance, FindsWhatCannotEvenBeRepeated) {
  FlawedEngine engine(Flaw::kUnlikeEveryTime);
  const RowInvariance verdict = verdict_of(engine);
  EXPECT_FALSE(verdict.exactness.alone);
  EXPECT_FALSE(verdict.exactness.with_neighbours);
}

TEST(RowInvariance, DoesWithASmallPool) {
  FlawedEngine engine(Flaw::kNone, 256);
  EXPECT_TRUE(verdict_of(engine).exactness.with_neighbours);
}

TEST(RowInvariance, HandsOnWhatTheEngineFailedAt) {
  FlawedEngine engine(Flaw::kNone);
  engine.fails_after = 40;
  const auto verdict = test_row_invariance(engine, {1, {}, 1});
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().message, "planned");
  EXPECT_EQ(engine.ledger().n_used(), 0u);
}

}  // namespace
}  // namespace fermata
