#include "engine/fake/fake_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>

namespace fermata {
namespace {

using Logits = std::vector<float>;

std::vector<TokenId> tokens(std::initializer_list<int> ids) {
  std::vector<TokenId> result;
  for (const int id : ids) result.push_back(TokenId{id});
  return result;
}

// Computes tokens as the next ones of seq, n_chunk rows at a time; the logits of the last.
Logits feed(FakeEngine& engine, SeqId seq, std::span<const TokenId> tokens, std::size_t n_chunk = 64) {
  Logits last;
  while (!tokens.empty()) {
    const std::size_t n = std::min(n_chunk, tokens.size());
    std::vector<Row> rows;
    for (std::size_t i = 0; i < n; ++i)
      rows.push_back({tokens[i], engine.ledger().length(seq) + static_cast<Position>(i), seq, i + 1 == tokens.size()});
    const auto status = engine.step(rows, nullptr);
    EXPECT_TRUE(status.has_value() && *status == StepStatus::kDone);
    tokens = tokens.subspan(n);
    if (tokens.empty()) last.assign(engine.logits(n - 1).begin(), engine.logits(n - 1).end());
  }
  return last;
}

TokenId best(std::span<const float> logits) {
  return TokenId{static_cast<int>(std::max_element(logits.begin(), logits.end()) - logits.begin())};
}

// Greedy, until the end of generation or n_max tokens.
std::string run(FakeEngine& engine, const std::string& prompt, int n_max) {
  Logits logits = feed(engine, SeqId{0}, engine.vocabulary().tokenize(prompt, Markers::kParse));
  std::string text;
  for (int i = 0; i < n_max; ++i) {
    const TokenId token = best(logits);
    if (engine.vocabulary().ends_generation(token)) return text + "<end>";
    text += engine.vocabulary().bytes(token);
    logits = feed(engine, SeqId{0}, std::vector{token});
  }
  return text;
}

FakeOptions with_bug(PlantedBug bug) {
  FakeOptions options;
  options.n_cells = 64;
  options.bug = bug;
  return options;
}

// --- bits

TEST(FakeEngine, LogitsDependOnTheTokensAloneWhateverTheChunksCellsAndNeighbours) {
  std::vector<TokenId> text;
  for (int i = 0; i < 40; ++i) text.push_back(TokenId{i * 7 % 250});
  FakeEngine alone;
  const Logits expected = feed(alone, SeqId{0}, text);

  FakeEngine busy;
  feed(busy, SeqId{5}, tokens({1, 2, 3, 4, 5, 6, 7, 8, 9}));
  feed(busy, SeqId{6}, tokens({1, 2, 3}));
  busy.trim(SeqId{5}, 3);  // a hole
  EXPECT_EQ(feed(busy, SeqId{7}, text, 3), expected);
  busy.share(SeqId{7}, SeqId{8}, 20);
  busy.trim(SeqId{7}, 0);
  EXPECT_EQ(feed(busy, SeqId{8}, std::span(text).subspan(20), 1), expected);
}

TEST(FakeEngine, EveryTokenAndEveryOrderMatters) {
  FakeEngine engine;
  const Logits one = feed(engine, SeqId{0}, tokens({1, 2, 3, 4}));
  EXPECT_NE(feed(engine, SeqId{1}, tokens({1, 3, 2, 4})), one);
  EXPECT_NE(feed(engine, SeqId{2}, tokens({9, 2, 3, 4})), one);
  EXPECT_EQ(feed(engine, SeqId{3}, tokens({1, 2, 3, 4})), one);
  FakeOptions other;
  other.model = hash_model(std::make_shared<FakeVocabulary>(), {.seed = 2});
  FakeEngine other_engine(other);
  EXPECT_NE(feed(other_engine, SeqId{0}, tokens({1, 2, 3, 4})), one);
}

TEST(FakeEngine, EndOfGenerationComesAboutAsOftenAsAsked) {
  for (const double wanted : {0.0, 0.1, 1.0}) {
    FakeOptions options;
    options.n_cells = 4096;
    options.model = hash_model(std::make_shared<FakeVocabulary>(), {.end_probability = wanted});
    FakeEngine engine(options);
    int n_ends = 0;
    for (int i = 0; i < 1000; ++i)
      n_ends += engine.vocabulary().ends_generation(best(feed(engine, SeqId{0}, tokens({i % 250}))));
    EXPECT_NEAR(n_ends, 1000 * wanted, 30);
  }
}

// --- scripts

TEST(FakeEngine, SaysTheScriptOfItsPrompt) {
  FakeVocabulary vocabulary;
  const auto shared = std::make_shared<FakeVocabulary>();
  const auto script = [&](const char* prompt, const char* text) {
    return FakeScript{vocabulary.tokenize(prompt, Markers::kParse), vocabulary.tokenize(text, Markers::kPlain)};
  };
  FakeOptions options;
  options.model = script_model(shared, {script("", "any"), script("hello", "Paris 你好 😀\n"), script("he", "x")},
                               hash_model(shared));
  EXPECT_EQ(run(*std::make_unique<FakeEngine>(options), "hello", 50), "Paris 你好 😀\n<end>");
  EXPECT_EQ(run(*std::make_unique<FakeEngine>(options), "help", 50), "<end>");  // "he" fits, two tokens are done
  EXPECT_EQ(run(*std::make_unique<FakeEngine>(options), "z", 50), "ny<end>");
}

TEST(FakeEngine, EchoesTheUsersText) {
  FakeOptions options;
  options.model = echo_model(std::make_shared<FakeVocabulary>());
  EXPECT_EQ(run(*std::make_unique<FakeEngine>(options), "<|begin|>be kind<|user|>say 好!<|answer|>", 50),
            "say 好!<end>");
  EXPECT_EQ(run(*std::make_unique<FakeEngine>(options), "no marker", 50), "<end>");
}

TEST(FakeEngine, Counts) {
  FakeOptions options;
  options.model = counter_model(std::make_shared<FakeVocabulary>(), 12);
  EXPECT_EQ(run(*std::make_unique<FakeEngine>(options), "<|user|>count<|answer|>", 99),
            "1 2 3 4 5 6 7 8 9 10 11 12<end>");
  options.model = counter_model(std::make_shared<FakeVocabulary>());
  std::string numbers;
  for (int i = 1; i <= 120; ++i) numbers += std::to_string(i) + " ";
  EXPECT_EQ(run(*std::make_unique<FakeEngine>(options), "<|answer|>", static_cast<int>(numbers.size())), numbers);
}

// --- faults and delays

TEST(FakeEngine, FailsInTheStepsItWasToldAndLosesNothingButTheRows) {
  FakeOptions options;
  options.faults = {{FakeFault::Kind::kFails, 1, 1},
                    {FakeFault::Kind::kNoCells, 2, 1},
                    {FakeFault::Kind::kAborts, 3, 1},
                    {FakeFault::Kind::kFails, 5, kForEver}};
  FakeEngine engine(options);
  const auto try_step = [&](Position position) {
    return engine.step(std::vector<Row>{{TokenId{1}, position, SeqId{0}, true}}, nullptr);
  };
  EXPECT_EQ(try_step(0).value(), StepStatus::kDone);
  EXPECT_EQ(try_step(1).error().code, Code::kEngine);
  EXPECT_EQ(try_step(1).error().code, Code::kNoCells);
  EXPECT_EQ(try_step(1).value(), StepStatus::kAborted);
  EXPECT_EQ(engine.ledger().length(SeqId{0}), 1);
  EXPECT_EQ(try_step(1).value(), StepStatus::kDone);
  const Logits logits(engine.logits(0).begin(), engine.logits(0).end());
  EXPECT_EQ(try_step(2).error().code, Code::kEngine);
  EXPECT_EQ(try_step(2).error().code, Code::kEngine);
  EXPECT_EQ(engine.n_rows(), 2u);
  FakeEngine other;
  EXPECT_EQ(feed(other, SeqId{0}, tokens({1, 1})), logits);
}

TEST(FakeEngine, HasNoCellsWhenItsPoolIsFull) {
  FakeOptions options;
  options.n_cells = 4;
  FakeEngine engine(options);
  feed(engine, SeqId{0}, tokens({1, 2, 3}));
  const std::vector<Row> rows = {{TokenId{1}, 3, SeqId{0}, false}, {TokenId{1}, 4, SeqId{0}, false}};
  const auto status = engine.step(rows, nullptr);
  EXPECT_EQ(status.error().code, Code::kNoCells);
  EXPECT_TRUE(status.error().retryable);
  EXPECT_EQ(engine.ledger().n_used(), 3u);
}

TEST(FakeEngine, StepTakesTheTimeOfItsRows) {
  ManualClock clock;
  FakeOptions options;
  options.on_compute = take_time(clock, milliseconds(5), milliseconds(2));
  FakeEngine engine(options);
  const Instant before = clock.now();
  feed(engine, SeqId{0}, tokens({1, 2, 3}));
  EXPECT_EQ(clock.now() - before, milliseconds(11));
}

struct Flag final : AbortFlag {
  std::atomic<bool> up = false;
  bool raised() const override { return up; }
};

TEST(FakeEngine, AbortRaisedInTheMiddleOfAStepLeavesThePoolAsBefore) {
  Flag flag;
  FakeOptions options;
  options.n_polls = 3;
  int n_polls = 0;
  options.on_poll = [&](std::int32_t poll) {
    ++n_polls;
    flag.up = poll == 2;
  };
  FakeEngine engine(options);
  feed(engine, SeqId{0}, tokens({1, 2, 3}));
  n_polls = 0;
  const std::vector<Row> rows = {
      {TokenId{4}, 3, SeqId{0}, true}, {TokenId{7}, 0, SeqId{1}, false}, {TokenId{5}, 4, SeqId{0}, true}};
  EXPECT_EQ(engine.step(rows, &flag).value(), StepStatus::kAborted);
  EXPECT_EQ(n_polls, 3);
  EXPECT_EQ(engine.n_aborted(), 1u);
  EXPECT_EQ(engine.ledger().length(SeqId{0}), 3);
  EXPECT_EQ(engine.ledger().length(SeqId{1}), 0);
  EXPECT_EQ(engine.ledger().head(), 3u);
  engine.ledger().audit();
  FakeEngine other;
  EXPECT_EQ(feed(engine, SeqId{0}, tokens({4, 5})), feed(other, SeqId{0}, tokens({1, 2, 3, 4, 5})));
}

// --- pages

TEST(FakeEngine, PagesCarryASequenceIntoAnotherPool) {
  std::vector<TokenId> text;
  for (int i = 0; i < 100; ++i) text.push_back(TokenId{i});
  FakeEngine from;
  feed(from, SeqId{0}, text);
  FakeEngine to;
  feed(to, SeqId{1}, tokens({1, 2, 3}));
  for (const Position begin : {0, 64})
    ASSERT_TRUE(to.import_page(SeqId{2}, *from.export_page(SeqId{0}, begin, std::min(begin + 64, 100))));
  EXPECT_EQ(to.tokens(SeqId{2}), text);
  EXPECT_EQ(feed(to, SeqId{2}, tokens({5})), feed(from, SeqId{0}, tokens({5})));
}

TEST(FakeEngine, RefusesEveryDamagedPageAndChangesNothing) {
  FakeEngine engine;
  feed(engine, SeqId{0}, tokens({1, 2, 3, 4, 5}));
  const Page page = *engine.export_page(SeqId{0}, 0, 5);
  const auto refuses = [&](FakeEngine& target, const Page& damaged) {
    const std::uint32_t n_used = target.ledger().n_used(), head = target.ledger().head();
    const auto result = target.import_page(SeqId{1}, damaged);
    return !result && result.error().code == Code::kInvalidArgument && target.ledger().n_used() == n_used &&
           target.ledger().head() == head && target.ledger().length(SeqId{1}) == 0;
  };
  for (std::size_t i = 0; i < page.bytes.size(); ++i) {
    Page damaged = page;
    damaged.bytes[i] ^= std::byte{0x10};
    EXPECT_TRUE(refuses(engine, damaged)) << "byte " << i;
    damaged = page;
    damaged.bytes.resize(i);
    EXPECT_TRUE(refuses(engine, damaged)) << "cut at " << i;
  }
  EXPECT_TRUE(refuses(engine, {1, 6, page.bytes}));
  EXPECT_TRUE(refuses(engine, {0, 4, page.bytes}));
  EXPECT_TRUE(refuses(engine, {0, 2'000'000'000, page.bytes}));
  EXPECT_TRUE(refuses(engine, {-2'000'000'000, 2'000'000'000, page.bytes}));
  EXPECT_TRUE(refuses(engine, *engine.export_page(SeqId{0}, 2, 5))) << "does not continue the sequence";
  FakeOptions other;
  other.weights = 2;
  FakeEngine stranger(other);
  EXPECT_TRUE(refuses(stranger, page));
  EXPECT_TRUE(engine.import_page(SeqId{1}, page));
}

TEST(FakeEngine, PageNeedsRoomAndPresentPositions) {
  FakeOptions options;
  options.n_cells = 8;
  FakeEngine engine(options);
  feed(engine, SeqId{0}, tokens({1, 2, 3, 4, 5}));
  const Page page = *engine.export_page(SeqId{0}, 0, 5);
  EXPECT_EQ(engine.import_page(SeqId{1}, page).error().code, Code::kNoCells);
  EXPECT_EQ(engine.export_page(SeqId{0}, 3, 6).error().code, Code::kInvalidArgument);
  EXPECT_EQ(engine.export_page(SeqId{0}, 3, 3).error().code, Code::kInvalidArgument);
  EXPECT_EQ(engine.export_page(SeqId{0}, -1, 3).error().code, Code::kInvalidArgument);
}

// --- planted bugs: a run that meets the bug's occasion differs from the sound one

Logits meet_every_occasion(PlantedBug bug) {
  FakeEngine engine(with_bug(bug));
  feed(engine, SeqId{0}, tokens({1, 2, 3, 4, 5, 6}));
  engine.share(SeqId{0}, SeqId{1}, 4);
  feed(engine, SeqId{1}, tokens({7, 8}));
  engine.trim(SeqId{0}, 2);                     // cells 2 and 3 are shared; 4 and 5 become a hole
  feed(engine, SeqId{1}, tokens({9, 10, 11}));  // into the hole: out of order
  Flag flag;
  flag.up = true;
  EXPECT_EQ(engine.step(std::vector<Row>{{TokenId{1}, 9, SeqId{1}, true}}, &flag).value(), StepStatus::kAborted);
  const std::vector<Row> rows = {{TokenId{3}, 2, SeqId{0}, true}, {TokenId{12}, 9, SeqId{1}, true}};
  EXPECT_EQ(engine.step(rows, nullptr).value(), StepStatus::kDone);
  engine.ledger().audit();
  return {engine.logits(1).begin(), engine.logits(1).end()};
}

TEST(FakeEngine, PlantedBugsChangeTheLogits) {
  const Logits sound = meet_every_occasion(PlantedBug::kNone);
  FakeEngine alone;
  EXPECT_EQ(feed(alone, SeqId{0}, tokens({1, 2, 3, 4, 7, 8, 9, 10, 11, 12})), sound);
  for (const PlantedBug bug : {PlantedBug::kCellsOutOfOrder, PlantedBug::kSharedCellFreedEarly,
                               PlantedBug::kLogitsRowLost, PlantedBug::kAbortSpoilsCells})
    EXPECT_NE(meet_every_occasion(bug), sound) << static_cast<int>(bug);
}

// --- the borders of the interface

TEST(FakeEngineDeath, RefusesRowsThatAreNotTheNextOnes) {
  FakeEngine engine;
  feed(engine, SeqId{0}, tokens({1, 2}));
  const auto step = [&](std::vector<Row> rows) { static_cast<void>(engine.step(rows, nullptr)); };
  EXPECT_DEATH(step({{TokenId{1}, 1, SeqId{0}, true}}), "check failed");
  EXPECT_DEATH(step({{TokenId{1}, 3, SeqId{0}, true}, {TokenId{1}, 2, SeqId{0}, true}}), "check failed");
  EXPECT_DEATH(step({{TokenId{100000}, 2, SeqId{0}, true}}), "check failed");
  EXPECT_DEATH(step({}), "check failed");
  step({{TokenId{1}, 2, SeqId{0}, false}});
  EXPECT_DEATH(static_cast<void>(engine.logits(0)), "check failed");
}

TEST(FakeEngine, SamplesWithTheSamplerOfItsVocabulary) {
  FakeEngine engine;
  const Logits logits = feed(engine, SeqId{0}, tokens({1, 2, 3}));
  SamplingParams params;
  params.temperature = 0;
  const auto sampler = engine.samplers().make(params);
  ASSERT_TRUE(sampler);
  EXPECT_EQ((*sampler)->sample(logits, 3)->token, best(logits));
}

}  // namespace
}  // namespace fermata
