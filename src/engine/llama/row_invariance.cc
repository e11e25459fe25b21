#include "engine/llama/row_invariance.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "base/check.h"

namespace fermata {
namespace {

constexpr Position kShort = 66;  // tokens of the reference: more than the largest step that is compared
constexpr Position kBrief = 28;  // tokens of most comparisons with it
constexpr Position kDeep = 544;  // where ggml's own attention changes its path (512 cells)
constexpr Position kTail = 4;    // tokens decoded at depth

constexpr SeqId kMe{0};
constexpr SeqId kNeighbour{1};

using Rows = std::vector<std::vector<float>>;  // [positions][n_vocab]

// Runs the comparisons, up to the first that fails: the verdict is then known.
class Tester {
 public:
  Tester(Engine& engine, const RowInvarianceOptions& options) : engine_(engine), options_(options) {
    std::mt19937_64 random(options.seed);
    const auto n = static_cast<std::uint64_t>(engine.vocabulary().n_tokens());
    while (tokens_.size() < std::size_t{kDeep} + kTail + 64)
      tokens_.push_back(TokenId{static_cast<std::int32_t>(random() % n)});
  }

  Result<RowInvariance> run() {
    auto failed = compare_all();
    clear();
    if (failed) return *failed;
    verdict_.exactness.alone = alone_;
    verdict_.exactness.with_neighbours = alone_ && verdict_.where.empty();
    verdict_.exactness.why = why();
    return verdict_;
  }

 private:
  using Failure = std::optional<Error>;

  std::string why() const {
    if (verdict_.where.empty())
      return "the self-test found the same bits for every batch, chunk, thread count and place in the pool";
    return "the self-test found other bits " + verdict_.where + " (a logit differs by " +
           std::to_string(verdict_.largest_difference) + ")";
  }

  Failure compare_all() {
    // The reference: one row at a time, in an empty pool.
    if (auto failure = prefill(kMe, kShort, 1, &reference_)) return failure;
    clear();
    Rows again;
    if (auto failure = prefill(kMe, kBrief / 2, 1, &again)) return failure;
    clear();
    alone_ = same(reference_, again, "when the same run was repeated");
    for (auto compare : {&Tester::compare_chunks, &Tester::compare_threads, &Tester::compare_neighbours,
                         &Tester::compare_holes, &Tester::compare_depth, &Tester::compare_deep_chunks}) {
      if (!verdict_.where.empty()) return {};
      auto failure = (this->*compare)();
      clear();
      if (failure) return failure;
    }
    return {};
  }

  Failure compare_chunks() {
    for (const Position chunk : {2, 7, 8, 64}) {
      if (chunk > engine_.info().n_rows_max) continue;
      Rows rows;
      if (auto failure = prefill(kMe, std::max(kBrief, chunk), chunk, &rows)) return failure;
      clear();
      same(reference_, rows, "with " + std::to_string(chunk) + " rows in a step instead of one");
    }
    return {};
  }

  Failure compare_threads() {
    if (!options_.use_threads || options_.n_threads < 2) return {};
    options_.use_threads(1);
    Rows rows;
    auto failure = prefill(kMe, kBrief, 8, &rows);
    options_.use_threads(options_.n_threads);
    if (!failure) same(reference_, rows, "with one thread");
    return failure;
  }

  // Rows of a neighbour between mine.
  Failure compare_neighbours() {
    if (auto failure = feed(kNeighbour, kShort / 2, 5)) return failure;
    Rows rows;
    for (Position at = 0; at < kBrief; at += 3) {
      std::vector<Row> step;
      for (Position i = at; i < std::min(at + 3, kBrief); ++i) {
        step.push_back(row(kMe, i, true));
        step.push_back(row(kNeighbour, engine_.ledger().length(kNeighbour) + (i - at), false));
      }
      if (auto failure = run_step(step, &rows)) return failure;
    }
    same(reference_, rows, "beside a neighbour in the same steps");
    return {};
  }

  // My rows in cells that a neighbour before me, and later another, left: not in the order of my positions.
  Failure compare_holes() {
    if (auto failure = feed(SeqId{2}, 11, 11)) return failure;
    if (auto failure = feed(kNeighbour, 40, 40)) return failure;
    engine_.trim(SeqId{2}, 0);
    Rows rows;
    if (auto failure = prefill(kMe, 20, 4, &rows)) return failure;
    engine_.trim(kNeighbour, 13);
    if (auto failure = prefill(kMe, 2 * kBrief, 7, &rows)) return failure;
    same(reference_, rows, "in holes of the pool");
    return {};
  }

  bool deep_fits() const { return engine_.info().n_cells >= kDeep + 16 * kTail + 64; }

  // A decode row far from its beginning, alone and beside 1, 6 and 7 sequences that share most of it.
  Failure compare_depth() {
    if (!deep_fits()) return {};
    if (auto failure = feed(kMe, kDeep, std::min<Position>(64, engine_.info().n_rows_max))) return failure;
    if (auto failure = prefill(kMe, kDeep + kTail, 1, &deep_reference_)) return failure;
    for (const int n_others : {1, 6, 7}) {
      if (n_others + 1 > engine_.info().n_rows_max || n_others >= engine_.ledger().n_seqs()) continue;
      engine_.trim(kMe, kDeep);
      for (int other = 1; other <= n_others; ++other) engine_.share(kMe, SeqId{other}, kDeep - other);
      Rows rows;
      for (Position at = kDeep; at < kDeep + kTail; ++at) {
        std::vector<Row> step{row(kMe, at, true)};
        for (int other = 1; other <= n_others; ++other)
          step.push_back(row(SeqId{other}, engine_.ledger().length(SeqId{other}), false));
        if (auto failure = run_step(step, &rows)) return failure;
      }
      for (int other = 1; other <= n_others; ++other) engine_.trim(SeqId{other}, 0);
      same(deep_reference_, rows, "at depth beside " + std::to_string(n_others) + " other sequences");
    }
    return {};
  }

  Failure compare_deep_chunks() {
    if (!deep_fits()) return {};
    if (auto failure = feed(kNeighbour, 9, 9)) return failure;
    if (auto failure = feed(kMe, kDeep, engine_.info().n_rows_max)) return failure;
    engine_.trim(kNeighbour, 0);
    Rows rows;
    if (auto failure = prefill(kMe, kDeep + kTail, 2, &rows)) return failure;
    same(deep_reference_, rows, "at depth after prefilling in other chunks");
    return {};
  }

  Row row(SeqId seq, Position position, bool wants_logits) const {
    return {tokens_[static_cast<std::size_t>(position)], position, seq, wants_logits};
  }

  Failure run_step(std::span<const Row> step, Rows* logits) {
    const auto done = engine_.step(step, nullptr);
    if (!done) return done.error();
    FERMATA_CHECK(*done == StepStatus::kDone);
    for (std::size_t i = 0; i < step.size(); ++i) {
      if (!step[i].wants_logits) continue;
      const auto row_of = engine_.logits(i);
      logits->emplace_back(row_of.begin(), row_of.end());
    }
    return {};
  }

  // Computes up to `end`, keeping every logits row.
  Failure prefill(SeqId seq, Position end, Position chunk, Rows* logits) {
    while (engine_.ledger().length(seq) < end) {
      std::vector<Row> step;
      const Position begin = engine_.ledger().length(seq);
      for (Position i = begin; i < std::min(begin + chunk, end); ++i) step.push_back(row(seq, i, true));
      if (auto failure = run_step(step, logits)) return failure;
    }
    return {};
  }

  // The same without logits.
  Failure feed(SeqId seq, Position end, Position chunk) {
    while (engine_.ledger().length(seq) < end) {
      std::vector<Row> step;
      const Position begin = engine_.ledger().length(seq);
      for (Position i = begin; i < std::min(begin + chunk, end); ++i) step.push_back(row(seq, i, false));
      if (auto failure = run_step(step, nullptr)) return failure;
    }
    return {};
  }

  void clear() {
    for (std::int32_t seq = 0; seq < engine_.ledger().n_seqs(); ++seq)
      if (engine_.ledger().length(SeqId{seq}) > 0) engine_.trim(SeqId{seq}, 0);
  }

  // The rows found must equal as many of the expected ones.
  bool same(const Rows& expected, const Rows& found, const std::string& where) {
    FERMATA_CHECK_LE(found.size(), expected.size());
    float largest = 0;
    bool equal = true;
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (std::memcmp(expected[i].data(), found[i].data(), expected[i].size() * sizeof(float)) == 0) continue;
      equal = false;
      for (std::size_t token = 0; token < expected[i].size(); ++token) {
        const float difference = std::fabs(expected[i][token] - found[i][token]);
        largest = std::isnan(difference) ? std::numeric_limits<float>::infinity() : std::max(largest, difference);
      }
    }
    verdict_.largest_difference = std::max(verdict_.largest_difference, largest);
    if (!equal && verdict_.where.empty()) verdict_.where = where;
    return equal;
  }

  Engine& engine_;
  const RowInvarianceOptions& options_;
  std::vector<TokenId> tokens_;
  Rows reference_;
  Rows deep_reference_;
  RowInvariance verdict_;
  bool alone_ = false;
};

}  // namespace

Result<RowInvariance> test_row_invariance(Engine& engine, const RowInvarianceOptions& options) {
  return Tester(engine, options).run();
}

}  // namespace fermata
