#include "engine/llama/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>

#include "engine/llama/doctor.h"
#include "engine/llama/gguf_fixture.h"
#include "engine/llama/model_fixture.h"

namespace fermata {
namespace {

using test::LoneContext;
using test::model_path;

constexpr std::int32_t kCells = 768;  // small enough to be full now and then

// True at the n-th question, and from then on.
class AbortAtQuestion final : public AbortFlag {
 public:
  explicit AbortAtQuestion(int n) : left_(n) {}
  bool raised() const override { return left_.fetch_sub(1, std::memory_order_relaxed) <= 1; }
  int left() const { return left_.load(); }

 private:
  mutable std::atomic<int> left_;
};

class LlamaEngineTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    cache_ = new test::TempFolder;
    setenv("XDG_CACHE_HOME", cache_->path().c_str(), 1);
    LlamaOptions options;
    options.model_path = model_path();
    options.n_cells = kCells;
    options.audit_masks = true;
    auto loaded = LlamaEngine::load(options, {});
    ASSERT_TRUE(loaded) << loaded.error().message << " " << loaded.error().detail;
    engine_ = std::move(*loaded).release();
    lone_ = new LoneContext(*engine_);
  }
  static void TearDownTestSuite() {
    delete lone_;
    delete engine_;
    delete cache_;
  }
  void TearDown() override {
    for (std::int32_t seq = 0; seq < engine_->ledger().n_seqs(); ++seq)
      if (engine_->ledger().length(SeqId{seq}) > 0) engine_->trim(SeqId{seq}, 0);
    tokens_.clear();
    check_books();
    EXPECT_EQ(engine_->n_mispredictions(), 0u);
  }

  static void check_books() {
    engine_->ledger().audit();
    for (std::int32_t seq = 0; seq < engine_->ledger().n_seqs(); ++seq)
      ASSERT_EQ(engine_->last_position_inside(SeqId{seq}), engine_->ledger().length(SeqId{seq}) - 1) << seq;
  }

  std::vector<TokenId>& tokens(SeqId seq) {
    tokens_.resize(static_cast<std::size_t>(engine_->ledger().n_seqs()));
    return tokens_[static_cast<std::size_t>(raw(seq))];
  }
  TokenId random_token() {
    return TokenId{static_cast<std::int32_t>(random_() % static_cast<unsigned>(engine_->info().n_vocab))};
  }

  // Appends n random tokens to each sequence in one step; all rows ask for logits.
  std::vector<Row> rows_for(const std::vector<std::pair<SeqId, int>>& wanted) {
    std::vector<Row> rows;
    for (const auto& [seq, n] : wanted)
      for (int i = 0; i < n; ++i) rows.push_back({random_token(), engine_->ledger().length(seq) + i, seq, true});
    return rows;
  }
  Result<StepStatus> step(const std::vector<Row>& rows, const AbortFlag* abort = nullptr) {
    const auto done = engine_->step(rows, abort);
    if (done && *done == StepStatus::kDone)
      for (const Row& row : rows) tokens(row.seq).push_back(row.token);
    return done;
  }
  void feed(SeqId seq, int n) {
    while (n > 0) {
      const int part = std::min(n, 32);
      const auto done = step(rows_for({{seq, part}}));
      ASSERT_TRUE(done && *done == StepStatus::kDone);
      n -= part;
    }
  }
  // Row i of the last step against a lone run of the same tokens, bit for bit.
  void expect_lone(const std::vector<Row>& rows, std::size_t i) {
    const auto& all = tokens(rows[i].seq);
    const auto expected = lone_->logits_after(std::span(all).first(static_cast<std::size_t>(rows[i].position) + 1));
    const auto found = engine_->logits(i);
    ASSERT_EQ(std::memcmp(found.data(), expected.data(), expected.size_bytes()), 0)
        << "sequence " << raw(rows[i].seq) << " position " << rows[i].position << " among " << rows.size() << " rows";
    ++n_compared_;
  }

  static test::TempFolder* cache_;
  static LlamaEngine* engine_;
  static LoneContext* lone_;
  std::mt19937 random_{20261129};
  std::vector<std::vector<TokenId>> tokens_;
  int n_compared_ = 0;
};

test::TempFolder* LlamaEngineTest::cache_ = nullptr;
LlamaEngine* LlamaEngineTest::engine_ = nullptr;
LoneContext* LlamaEngineTest::lone_ = nullptr;

TEST_F(LlamaEngineTest, SaysWhatItIs) {
  const EngineInfo& info = engine_->info();
  EXPECT_EQ(info.n_cells, kCells);
  EXPECT_EQ(info.n_vocab, engine_->vocabulary().n_tokens());
  EXPECT_EQ(info.fingerprint.size(), 64u);
  EXPECT_FALSE(info.model_name.empty());
  EXPECT_FALSE(info.exactness.why.empty());
  const DoctorReport report = examine(*engine_);
  EXPECT_EQ(report.model.fingerprint, info.fingerprint);
  EXPECT_NE(report.to_json().find(info.fingerprint), std::string::npos);
  EXPECT_NE(report.to_text().find(info.exactness.why), std::string::npos);
  EXPECT_GT(report.model.pool_bytes, 0u);
}

// The heart: whatever happens around it, every row is what a lone run gives, and the books agree after every call.
TEST_F(LlamaEngineTest, RandomProgramEqualsALoneRun) {
  ASSERT_TRUE(engine_->info().exactness.with_neighbours) << engine_->info().exactness.why;
  constexpr int kSeqs = 12;
  constexpr int kCalls = 400;
  int n_aborted = 0;
  int n_full = 0;
  int n_moved = 0;
  int n_shared = 0;
  auto any = [&] { return SeqId{static_cast<std::int32_t>(random_() % kSeqs)}; };
  for (int call = 0; call < kCalls && !HasFatalFailure(); ++call) {
    const SeqId seq = any();
    const Position length = engine_->ledger().length(seq);
    switch (random_() % 10) {
      case 0:
        if (length > 0) {
          const auto begin = static_cast<Position>(random_() % static_cast<unsigned>(length));
          engine_->trim(seq, begin);
          tokens(seq).resize(static_cast<std::size_t>(begin));
        }
        break;
      case 1: {
        const SeqId from = any();
        const Position most = engine_->ledger().length(from);
        if (from == seq || most == 0) break;
        if (length > 0) engine_->trim(seq, 0);
        const auto end = static_cast<Position>(1 + random_() % static_cast<unsigned>(most));
        engine_->share(from, seq, end);
        tokens(seq).assign(tokens(from).begin(), tokens(from).begin() + end);
        ++n_shared;
        break;
      }
      case 2: {
        const SeqId from = any();
        const Position most = engine_->ledger().length(from);
        if (from == seq || most == 0) break;
        if (length > 0) engine_->trim(seq, 0);
        tokens(seq).clear();
        for (Position begin = 0; begin < most; begin += limits::kPageTokens) {
          const auto page = engine_->export_page(from, begin, std::min(begin + limits::kPageTokens, most));
          ASSERT_TRUE(page) << page.error().detail;
          check_books();
          const auto taken = engine_->import_page(seq, *page);
          if (!taken) {
            ASSERT_EQ(taken.error().code, Code::kNoCells);
            ++n_full;
            break;
          }
          check_books();
          tokens(seq).assign(tokens(from).begin(), tokens(from).begin() + page->end);
          ++n_moved;
        }
        break;
      }
      default: {
        std::vector<std::pair<SeqId, int>> wanted;
        for (int other = 0; other < kSeqs; ++other)
          if (random_() % 3 == 0) wanted.emplace_back(SeqId{other}, 1 + static_cast<int>(random_() % 3));
        if (random_() % 4 == 0) wanted.emplace_back(SeqId{kSeqs}, 1 + static_cast<int>(random_() % 40));
        if (wanted.empty()) break;
        const auto rows = rows_for(wanted);
        const AbortAtQuestion abort(1 + static_cast<int>(random_() % 60));
        const auto done = step(rows, random_() % 4 == 0 ? &abort : nullptr);
        if (!done) {
          ASSERT_EQ(done.error().code, Code::kNoCells) << done.error().detail;
          ++n_full;
          for (int other = 0; other < kSeqs; other += 2) {
            engine_->trim(SeqId{other}, engine_->ledger().length(SeqId{other}) / 4);
            tokens(SeqId{other}).resize(static_cast<std::size_t>(engine_->ledger().length(SeqId{other})));
          }
          engine_->trim(SeqId{kSeqs}, 0);
          tokens(SeqId{kSeqs}).clear();
        } else if (*done == StepStatus::kAborted) {
          ++n_aborted;
        } else if (random_() % 4 == 0) {
          expect_lone(rows, random_() % rows.size());
          expect_lone(rows, rows.size() - 1);
        }
      }
    }
    check_books();
  }
  EXPECT_GT(n_compared_, 30);
  EXPECT_GT(n_aborted, 5);
  EXPECT_GT(n_moved, 5);
  EXPECT_GT(n_shared, 5);
  EXPECT_GT(n_full, 0);
}

TEST_F(LlamaEngineTest, AbortLeavesThePoolAsBefore) {
  feed(SeqId{0}, 40);
  feed(SeqId{1}, 7);
  const auto rows = rows_for({{SeqId{0}, 5}, {SeqId{1}, 2}});
  const std::vector<Position> before(engine_->ledger().positions().begin(), engine_->ledger().positions().end());
  int n_aborted = 0;
  for (int question = 1; question < 4000; question += 1 + question / 4) {
    const AbortAtQuestion abort(question);
    const auto done = engine_->step(rows, &abort);
    ASSERT_TRUE(done) << done.error().detail;
    check_books();
    if (*done == StepStatus::kDone) break;
    ++n_aborted;
    EXPECT_TRUE(std::ranges::equal(engine_->ledger().positions(), before));
  }
  EXPECT_GT(n_aborted, 10);
  for (const Row& row : rows) tokens(row.seq).push_back(row.token);
  if (engine_->info().exactness.with_neighbours) expect_lone(rows, rows.size() - 1);
}

TEST_F(LlamaEngineTest, FullPoolRefusesAndKeepsWhatItHas) {
  const SeqId seq{0};
  feed(seq, kCells - 3);
  const auto refused = engine_->step(rows_for({{seq, 4}}), nullptr);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kNoCells);
  EXPECT_TRUE(refused.error().retryable);
  check_books();
  const auto page = engine_->export_page(seq, 0, 4);
  ASSERT_TRUE(page);
  EXPECT_EQ(engine_->import_page(SeqId{1}, *page).error().code, Code::kNoCells);
  check_books();
  const auto rows = rows_for({{seq, 3}});
  ASSERT_TRUE(step(rows));
  EXPECT_EQ(engine_->ledger().n_free(), 0u);
  check_books();
}

TEST_F(LlamaEngineTest, RefusesEveryLyingPageHeader) {
  feed(SeqId{0}, 20);
  const auto good = engine_->export_page(SeqId{0}, 0, 20);
  ASSERT_TRUE(good);
  const std::vector<Position> before(engine_->ledger().positions().begin(), engine_->ledger().positions().end());
  for (std::size_t at = 0; at < kPageHeaderBytes + 16; ++at)
    for (const int change : {1, 0x80, 0xff}) {
      Page bad = *good;
      bad.bytes[at] ^= static_cast<std::byte>(change);
      const auto taken = engine_->import_page(SeqId{1}, bad);
      ASSERT_FALSE(taken) << at;
      EXPECT_EQ(taken.error().code, Code::kInvalidArgument);
      ASSERT_TRUE(std::ranges::equal(engine_->ledger().positions(), before));
    }
  check_books();
  const Page& gap = *good;
  EXPECT_EQ(engine_->import_page(SeqId{0}, gap).error().code, Code::kInvalidArgument);  // does not continue at 20
  EXPECT_FALSE(engine_->export_page(SeqId{0}, 10, 21));
  EXPECT_FALSE(engine_->export_page(SeqId{0}, 10, 10));
  EXPECT_FALSE(engine_->export_page(SeqId{0}, -1, 4));
  ASSERT_TRUE(engine_->import_page(SeqId{1}, *good));
  tokens(SeqId{1}) = tokens(SeqId{0});
  const auto rows = rows_for({{SeqId{1}, 1}});
  ASSERT_TRUE(step(rows));
  if (engine_->info().exactness.with_neighbours) expect_lone(rows, 0);
}

TEST_F(LlamaEngineTest, PagesOfEqualStatesAreEqualBytes) {
  feed(SeqId{2}, 9);
  feed(SeqId{0}, 30);
  engine_->trim(SeqId{2}, 0);
  feed(SeqId{0}, 20);  // now partly in the hole below
  const auto first = engine_->export_page(SeqId{0}, 10, 50);
  engine_->share(SeqId{0}, SeqId{3}, 10);
  ASSERT_TRUE(engine_->import_page(SeqId{3}, *first));
  const auto second = engine_->export_page(SeqId{3}, 10, 50);
  EXPECT_TRUE(first->bytes == second->bytes);
}

TEST_F(LlamaEngineTest, VocabularyTurnsTextIntoTokensAndBack) {
  const Vocabulary& words = engine_->vocabulary();
  for (const std::string text :
       {"Hello, world", "  two  spaces\n\n\ttab", "naïve 中文 🙂 end", "", "<|im_start|>user"}) {
    std::string back;
    for (const TokenId token : words.tokenize(text, Markers::kPlain)) {
      EXPECT_FALSE(words.is_control(token)) << text;
      back += words.bytes(token);
    }
    EXPECT_EQ(back, text);
  }
  const auto marked = words.tokenize("<|im_start|>", Markers::kParse);
  ASSERT_EQ(marked.size(), 1u);
  EXPECT_TRUE(words.is_control(marked[0]));
  EXPECT_EQ(words.bytes(marked[0]), "");
  int n_ends = 0;
  for (std::int32_t token = 0; token < words.n_tokens(); ++token)
    if (words.ends_generation(TokenId{token})) {
      ++n_ends;
      EXPECT_EQ(words.bytes(TokenId{token}), "");
    }
  EXPECT_GT(n_ends, 0);
  // Bytes that are no UTF-8 must not end the process.
  for (const std::string& text : {std::string("\xff\xfe\x80"), std::string("\xe4\xb8"), std::string("a\0b", 3)})
    words.tokenize(text, Markers::kPlain);
}

TEST(LlamaEngineLoad, RefusesOptionsOutOfRange) {
  auto code = [](auto change) {
    LlamaOptions options;
    options.model_path = model_path();
    change(options);
    const auto loaded = LlamaEngine::load(options, {});
    EXPECT_FALSE(loaded);
    return loaded ? Code::kEngine : loaded.error().code;
  };
  EXPECT_EQ(code([](LlamaOptions& o) { o.n_cells = 0; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](LlamaOptions& o) { o.n_rows_max = 1; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](LlamaOptions& o) { o.n_sequences = 257; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](LlamaOptions& o) { o.n_threads = -1; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](LlamaOptions& o) { o.model_path = "/no/such.gguf"; }), Code::kModel);
}

TEST(LlamaEngineLoad, StopsWhenProgressSaysSo) {
  LlamaOptions options;
  options.model_path = model_path();
  options.self_test = SelfTest::kNever;
  const auto loaded = LlamaEngine::load(options, [](float) { return false; });
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, Code::kAborted);
}

}  // namespace
}  // namespace fermata
