#include "generation/revision.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "generation/generation.h"
#include "generation/test_listener.h"
#include "generation/test_model.h"
#include "generation/text_stream_reference.h"

namespace fermata {
namespace {

using test::Listener;

const test::PieceVocabulary kVocabulary({"Hi", "Us", "er", "er:", "\n", "\nUser", ":", " of P", "aris", "User",
                                         "\xF0\x9F", "\x98\x80", "\xE4\xBD", "\xA0", "a", "b", "\xFF"});
const test::HashSamplerFactory kSamplers;

EngineInfo engine_info() {
  EngineInfo info;
  info.n_vocab = kVocabulary.n_tokens();
  info.n_cells = 40;
  return info;
}

std::vector<TokenId> tokens(const std::vector<std::string>& pieces) {
  std::vector<TokenId> ids;
  for (const std::string& piece : pieces) ids.push_back(kVocabulary.find(piece));
  return ids;
}

// The row of logits that follows these tokens: any function of all of them.
std::vector<float> logits_of(std::span<const TokenId> before) {
  std::uint64_t hash = 7;
  for (const TokenId token : before) hash = test::mix(hash, static_cast<std::uint64_t>(raw(token)));
  std::vector<float> row(static_cast<std::size_t>(kVocabulary.n_tokens()));
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<float>(test::mix(hash, i) % 1000) / 100;
  row.back() -= 8;  // the end of generation is rare
  return row;
}

ValidRequest valid(Request request) {
  auto checked = validate(std::move(request), engine_info(), kVocabulary, kSamplers);
  EXPECT_TRUE(checked.has_value());
  return *std::move(checked);
}

// A generation that says what its sampler chooses, or what the test dictates, and is then frozen.
class Frozen {
 public:
  explicit Frozen(Request request)
      : generation_(*Generation::make(GenerationId{1}, valid(std::move(request)), kVocabulary, {})) {
    EXPECT_TRUE(generation_.apply(Trigger::kAdmit, WaitReason::kNone, {}).has_value());
  }
  explicit Frozen(Generation generation) : generation_(std::move(generation)) {
    EXPECT_TRUE(generation_.apply(Trigger::kAdmit, WaitReason::kNone, {}).has_value());
  }

  Generation& operator*() { return generation_; }
  Generation* operator->() { return &generation_; }
  Listener& heard() {
    listener_.take(generation_);
    return listener_;
  }
  // As far as it goes.
  void say(int n) {
    while (n-- > 0 && generation_.state() == State::kRunning) step();
  }
  void say(const std::vector<std::string>& pieces) {
    for (const std::string& piece : pieces) {
      compute();
      std::vector<float> row(static_cast<std::size_t>(kVocabulary.n_tokens()), -1);
      row[static_cast<std::size_t>(raw(kVocabulary.find(piece)))] = 1;
      generation_.choose(row, {});
    }
  }
  void freeze(bool with_logits) {
    if (with_logits) {
      compute();
      generation_.hold_logits(logits_of(generation_.journal().tokens()));
    }
    EXPECT_TRUE(generation_.apply(Trigger::kReachPause, WaitReason::kUser, {}).has_value());
  }
  void resume() {
    EXPECT_TRUE(generation_.apply(Trigger::kResume, WaitReason::kNone, {}).has_value());
    if (generation_.has_logits()) generation_.choose(generation_.take_logits(), {});
  }
  void finish() {
    say(1000);
    EXPECT_EQ(generation_.state(), State::kFinished);
  }

 private:
  void compute() { generation_.add_computed(generation_.wanted() - generation_.computed(), {}); }
  void step() {
    compute();
    generation_.choose(logits_of(generation_.journal().tokens()), {});
  }
  Generation generation_;
  Listener listener_;
};

Request plain(std::vector<std::string> stop = {}) {
  Request request;
  request.prompt = tokens({"a", "b"});
  request.stop = std::move(stop);
  request.n_tokens_max = 20;
  request.sampling.temperature = 0;
  return request;
}

Result<Revision> revise(const Anchor& anchor, const std::vector<Splice>& splices) {
  return Revision::make(anchor, splices, anchor.request, engine_info(), kVocabulary, {});
}

TEST(Revision, keeps_what_was_told_before_the_first_changed_byte) {
  Frozen it(plain());
  it.say({"Hi", " of P", "aris", "a"});
  it.freeze(true);
  auto revision = revise(it->anchor(), {{4, 5, tokens({"b"})}});
  ASSERT_TRUE(revision.has_value());
  EXPECT_EQ(revision->first_changed(), 4);
  EXPECT_TRUE(revision->takes_text_back());
  it.heard();
  ASSERT_TRUE(it->revise(*std::move(revision), {}).has_value());
  EXPECT_EQ(it.heard().text, "Hi of Pba");
  EXPECT_EQ(it.heard().rewinds.front().n_bytes, 7u);
  EXPECT_EQ(it->computed(), 4) << "what stands before is not computed again";
  EXPECT_FALSE(it->has_logits());
  EXPECT_EQ(it->version(), 2u);
  EXPECT_EQ(it->journal()[4].origin, Origin::kEdited);
  EXPECT_EQ(it->journal()[5].origin, Origin::kSampled);
}

TEST(Revision, text_that_stays_the_same_is_not_taken_back) {
  Frozen it(plain());
  it.say({"User", "a"});
  it.freeze(true);
  auto revision = revise(it->anchor(), {{2, 3, tokens({"Us", "er"})}});
  ASSERT_TRUE(revision.has_value());
  EXPECT_FALSE(revision->takes_text_back());
  EXPECT_EQ(revision->first_changed(), 2);
  it.heard();
  ASSERT_TRUE(it->revise(*std::move(revision), {}).has_value());
  EXPECT_EQ(it.heard().text, "Usera");
  EXPECT_EQ(it.heard().rows.size(), 3u);
}

TEST(Revision, an_edit_behind_the_end_keeps_all_and_one_that_changes_nothing_keeps_the_logits) {
  Frozen it(plain());
  it.say({"Hi"});
  it.freeze(true);
  const Anchor anchor = it->anchor();
  auto same = revise(anchor, {{2, 3, tokens({"Hi"})}});
  ASSERT_TRUE(same.has_value());
  EXPECT_EQ(same->first_changed(), 3);
  ASSERT_TRUE(it->revise(*std::move(same), {}).has_value());
  EXPECT_TRUE(it->has_logits());
  EXPECT_EQ(it->computed(), 3);
  auto more = revise(it->anchor(), {{3, 3, tokens({"a", "b"}), TokenRole::kGenerated, Origin::kInjected}});
  ASSERT_TRUE(more.has_value());
  ASSERT_TRUE(it->revise(*std::move(more), {}).has_value());
  EXPECT_EQ(it->computed(), 3);
  EXPECT_EQ(it.heard().text, "Hiab");
}

TEST(Revision, a_cut_leaves_the_row_of_the_last_token_to_be_made) {
  Frozen it(plain());
  it.say({"Hi", "a", "b"});
  it.freeze(true);
  ASSERT_TRUE(it->revise(*revise(it->anchor(), {{3, 5, {}}}), {}).has_value());
  EXPECT_EQ(it->wanted(), 3);
  EXPECT_EQ(it->computed(), 2);
  EXPECT_EQ(it.heard().text, "Hi");
}

TEST(Revision, is_stale_when_its_generation_went_on_or_was_revised) {
  Frozen it(plain());
  it.say({"Hi"});
  it.freeze(false);
  auto first = revise(it->anchor(), {{2, 3, tokens({"a"})}});
  auto second = revise(it->anchor(), {{2, 3, tokens({"b"})}});
  ASSERT_TRUE(it->revise(*std::move(first), {}).has_value());
  EXPECT_EQ(it->revise(*std::move(second), {}).error().code, Code::kStale);
  auto third = revise(it->anchor(), {{2, 3, tokens({"b"})}});
  it.resume();
  it.say({"a"});
  it.freeze(false);
  EXPECT_EQ(it->revise(*std::move(third), {}).error().code, Code::kStale);
  EXPECT_EQ(it->journal().text(), "aa");
}

TEST(Revision, notes_within_the_completion_are_no_text_of_it) {
  Frozen it(plain());
  it.say({"Hi", "a"});
  it.freeze(true);
  const std::vector<TokenId> note = {kVocabulary.end(), kVocabulary.control(), kVocabulary.find("b")};
  ASSERT_TRUE(it->revise(*revise(it->anchor(), {{4, 4, note, TokenRole::kPrompt, Origin::kInjected}}), {}).has_value());
  it.resume();
  it.say({"er"});
  EXPECT_EQ(it.heard().text, "Hiaer");
  EXPECT_EQ(it->journal().n_generated(), 3);
  EXPECT_EQ(it->journal().n_prompt(), 2);
  EXPECT_EQ(it.heard().rows.size(), 6u) << "but rows of the journal";
}

TEST(Revision, of_the_prompt_tells_the_prompt_anew) {
  Frozen it(plain());
  it.say({"Hi", "a"});
  it.freeze(true);
  it.heard();
  const Splice splice{1, 2, tokens({"er", "er"}), TokenRole::kPrompt, Origin::kEdited};
  ASSERT_TRUE(it->revise(*revise(it->anchor(), {splice}), {}).has_value());
  EXPECT_EQ(it.heard().rewinds.front().prompt.size(), 3u);
  EXPECT_EQ(it.heard().text, "Hia");
  EXPECT_EQ(it->computed(), 1);
  EXPECT_EQ(it->request().prompt, tokens({"a", "er", "er"}));
}

TEST(Revision, refuses_what_cannot_be_and_says_where) {
  Frozen it(plain({"\nUser"}));
  it.say({"Hi", "\n"});
  it.freeze(true);
  const Anchor anchor = it->anchor();
  const auto refusal = [&](const std::vector<Splice>& splices) {
    auto revision = revise(anchor, splices);
    EXPECT_FALSE(revision.has_value());
    return revision ? Error{} : revision.error();
  };
  EXPECT_EQ(refusal({{4, 5, {}}}).code, Code::kInvalidArgument) << "beyond the end";
  EXPECT_EQ(refusal({{3, 2, {}}}).code, Code::kInvalidArgument) << "backwards";
  EXPECT_EQ(refusal({{3, 4, {}}, {2, 3, {}}}).code, Code::kInvalidArgument) << "out of order";
  EXPECT_EQ(refusal({{1, 3, tokens({"a"})}}).code, Code::kInvalidArgument) << "prompt and completion at once";
  EXPECT_EQ(refusal({{0, 2, {}}}).code, Code::kInvalidArgument) << "no prompt";
  EXPECT_EQ(refusal({{2, 3, {TokenId{9999}}}}).code, Code::kInvalidArgument) << "no such token";
  EXPECT_EQ(refusal({{2, 3, {kVocabulary.end()}}}).code, Code::kInvalidArgument) << "it would end";
  EXPECT_EQ(refusal({{4, 4, tokens({"User"})}}).detail, "token 5") << "a stop string that is complete";
  EXPECT_EQ(refusal({{3, 3, tokens({"\nUser", "a"})}}).detail, "token 4") << "and one that the text goes on behind";
  EXPECT_EQ(refusal({{4, 4, std::vector<TokenId>(19, TokenId{0})}}).code, Code::kContextLength) << "max_tokens";
  EXPECT_EQ(refusal({{2, 2, std::vector<TokenId>(36, TokenId{0})}}).code, Code::kContextLength) << "the pool";
}

TEST(Revision, a_grammar_that_is_broken_says_where) {
  Request request = plain();
  request.sampling.grammar = std::string(1, static_cast<char>(raw(kVocabulary.find("er"))));
  Frozen it(request);
  it.say({"Hi", "a"});
  it.freeze(true);
  auto revision = revise(it->anchor(), {{3, 3, tokens({"b", "er"})}});
  ASSERT_FALSE(revision.has_value());
  EXPECT_EQ(revision.error().code, Code::kGrammar);
  EXPECT_EQ(revision.error().detail, "token 4");
}

// ---------------------------------------------------------------------------------------------------------------------

// Random programs of saying, freezing, revising and branching: what was told is always what the journal says, and what
// comes next is what a generation made of the journal at once would say.
class Program {
 public:
  Program(unsigned seed, std::map<std::string, int>& coverage)
      : random_(seed), coverage_(coverage), request_(random_request()), it_(request_) {}

  void run() {
    const int n_rounds = number(1, 5);
    for (int i = 0; i < n_rounds && it_->state() == State::kRunning; ++i) {
      it_.say(number(0, 6));
      if (it_->state() != State::kRunning) break;
      it_.freeze(number(0, 1) == 1);
      check_told();
      change();
      if (testing::Test::HasFatalFailure()) return;
      it_.resume();
    }
    compare_with_branch();
  }

 private:
  int number(int lowest, int highest) { return std::uniform_int_distribution<int>(lowest, highest)(random_); }
  TokenId any_token() { return TokenId{number(0, kVocabulary.n_tokens() - 2)}; }

  Request random_request() {
    Request request;
    for (int n = number(1, 4); n > 0; --n) request.prompt.push_back(any_token());
    const std::vector<std::string> stops = {"\nUser", "er:", "User", "ab", "ParisHi"};
    for (int n = number(0, 2); n > 0; --n) request.stop.push_back(stops[static_cast<std::size_t>(number(0, 4))]);
    request.n_tokens_max = number(10, 25);
    request.sampling.seed = static_cast<std::uint64_t>(number(0, 1000));
    request.sampling.temperature = number(0, 1) ? 1.0f : 0.0f;
    return request;
  }

  std::vector<Splice> random_splices(const Journal& journal) {
    std::vector<Splice> splices;
    Position from = 0;
    for (int n = number(0, 3); n > 0; --n) {
      Splice splice;
      const bool in_prompt = number(0, 5) == 0;
      const Position lowest = std::max(from, in_prompt ? 0 : journal.n_prompt());
      const Position highest = in_prompt ? journal.n_prompt() : journal.size();
      if (lowest > highest) continue;
      splice.begin = number(lowest, highest);
      splice.end = number(splice.begin, std::min<Position>(highest, splice.begin + 2));
      splice.role = in_prompt || number(0, 9) == 0 ? TokenRole::kPrompt : TokenRole::kGenerated;
      for (int k = number(0, 3); k > 0; --k) splice.tokens.push_back(any_token());
      from = splice.end;
      splices.push_back(splice);
    }
    return splices;
  }

  void change() {
    const Anchor anchor = it_->anchor();
    Request other = *anchor.request;
    const bool has_other = number(0, 3) == 0;
    if (has_other) other.sampling.seed = static_cast<std::uint64_t>(number(0, 1000));
    const std::string before(anchor.journal.text());
    auto revision = Revision::make(anchor, random_splices(anchor.journal), has_other ? valid(other) : anchor.request,
                                   engine_info(), kVocabulary, {});
    if (!revision) {
      ++coverage_["refused"];
      return;
    }
    ++coverage_[revision->takes_text_back() ? "text taken back" : "no text taken back"];
    if (!anchor.logits.empty() && revision->first_changed() == anchor.journal.size()) ++coverage_["only appended"];
    const Position computed = it_->computed();
    const Position first_changed = revision->first_changed();
    it_.heard();
    ASSERT_TRUE(it_->revise(*std::move(revision), {}).has_value());
    ASSERT_GE(it_->computed(), std::min({computed, first_changed, it_->wanted() - 1}));
    ASSERT_LE(it_->computed(), first_changed);
    ASSERT_EQ(it_->has_logits(), it_->computed() == it_->wanted());
    check_told();
    ++coverage_["revised"];
  }

  // By the slow and obvious twin of the text stream.
  void check_told() {
    const Journal& journal = it_->journal();
    std::string prompt;
    for (Position i = 0; i < journal.n_prompt(); ++i) prompt += text_bytes(kVocabulary, journal[i].token);
    if (prompt.size() > 4) prompt.erase(0, prompt.size() - 4);
    const auto expected = journal.n_generated() == 0
                              ? reference::Expected{}
                              : reference::expect(prompt, journal.text(), it_->request().stop, false);
    Listener& heard = it_.heard();
    ASSERT_EQ(heard.text, expected.text);
    ASSERT_EQ(it_->pause_record().n_bytes_sent, expected.n_bytes_out);
    Position n_rows = journal.n_prompt();
    while (n_rows < journal.size() && journal.bytes_end(n_rows) <= expected.n_bytes_out) ++n_rows;
    ASSERT_EQ(heard.rows.size(), static_cast<std::size_t>(n_rows - journal.n_prompt()));
    for (Position i = journal.n_prompt(); i < n_rows; ++i)
      ASSERT_EQ(heard.rows[static_cast<std::size_t>(i - journal.n_prompt())].token, journal[i].token);
    if (expected.n_bytes_out < journal.text().size()) ++coverage_["told while text was held"];
  }

  void compare_with_branch() {
    if (it_->state() != State::kRunning) return;
    it_.freeze(false);
    auto copy = revise(it_->anchor(), {});
    ASSERT_TRUE(copy.has_value());
    Frozen branch(Generation::branch(GenerationId{2}, *std::move(copy), kVocabulary, {}));
    it_.resume();
    branch.finish();
    it_.finish();
    ++coverage_["branch compared"];
    ASSERT_EQ(branch->end_reason(), it_->end_reason());
    ASSERT_EQ(branch.heard().text, it_.heard().text);
    ASSERT_EQ(branch->journal().size(), it_->journal().size());
    for (Position i = 0; i < branch->journal().size(); ++i) {
      ASSERT_EQ(branch->journal()[i].token, it_->journal()[i].token);
      ASSERT_EQ(branch->journal()[i].logprob, it_->journal()[i].logprob);
    }
  }

  std::mt19937 random_;
  std::map<std::string, int>& coverage_;
  Request request_;
  Frozen it_;
};

TEST(RevisionRandom, what_was_told_is_what_the_journal_says) {
  std::map<std::string, int> coverage;
  for (unsigned seed = 0; seed < 5'000; ++seed) {
    Program(seed, coverage).run();
    if (HasFatalFailure()) FAIL() << "seed " << seed;
  }
  const std::vector<std::pair<std::string, int>> at_least{
      {"refused", 300},
      {"revised", 3'000},
      {"text taken back", 1'000},
      {"no text taken back", 1'000},
      {"only appended", 200},
      {"branch compared", 500},
      {"told while text was held", 300},
  };
  for (const auto& [what, n] : at_least) EXPECT_GE(coverage[what], n) << what;
}

}  // namespace
}  // namespace fermata
