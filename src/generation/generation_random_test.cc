// Random lives of generations: paused, preempted, requeued and cancelled at random, compared with the undisturbed run
// of the same request, with the reference of the text stream, and with folds made anew from the journal.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "generation/generation.h"
#include "generation/test_listener.h"
#include "generation/test_model.h"
#include "generation/text_stream_reference.h"

namespace fermata {
namespace {

using test::Listener;
using Coverage = std::map<std::string, int>;

const test::PieceVocabulary kVocabulary({"a",        "b",    "ab",   "aab",  "U",    "Us",       "User",     "er:",
                                         "\nU",      "\n",   ":",    "你",   "好",   "吗",       "😀",        "é",
                                         "\xE4\xBD", "\xA0", "\xE4", "\xBD", "\xF0", "\xF0\x9F", "\x98\x80", "\x98",
                                         "\x80",     "\xC3", "\xFF", "hi\n", "",     "好\xF0",   "a\xE4",    "\xA9 "});
const test::HashSamplerFactory kSamplers;

// The model: logits are a function of the tokens, and of nothing else.
std::vector<float> logits_of(std::span<const TokenId> tokens) {
  std::uint64_t state = 5;
  for (const TokenId token : tokens) state = test::mix(state, static_cast<std::uint64_t>(raw(token)));
  std::vector<float> logits(static_cast<std::size_t>(kVocabulary.n_tokens()));
  for (std::size_t i = 0; i < logits.size(); ++i)
    logits[i] = static_cast<float>(test::mix(state, i) >> 40) / static_cast<float>(1 << 24);
  logits.back() -= 0.3f;  // the end comes not too soon
  return logits;
}

// What a fold shows of itself.
struct Shown {
  std::size_t n_bytes_in = 0;
  std::size_t n_bytes_out = 0;
  std::string stop_string;
  TokenId next{};
  SamplerCarry carry;
  bool operator==(const Shown&) const = default;
};

Shown shown(const Fold& fold, std::span<const TokenId> tokens) {
  const auto choice = fold.sampler().sample(logits_of(tokens), static_cast<Position>(tokens.size()));
  return {fold.text().n_bytes_in(), fold.text().n_bytes_out(), std::string(fold.text().stop_string()), choice->token,
          choice->carry};
}

class Life {
 public:
  Life(unsigned seed, Coverage& coverage) : random_(seed), coverage_(coverage), generation_(make()) {}

  void run() {
    live_through();
    if (testing::Test::HasFatalFailure()) return;
    compare_events();
    compare_folds();
    compare_with_undisturbed();
    compare_with_plain_sampling();
  }

 private:
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  bool one_in(std::size_t n) { return below(n) == 0; }

  Generation make() {
    static const std::vector<std::string> kStops{"\n",  "\nUser:", "User", "ser", "你好", "好吗", "😀",
                                                 "😀\n", "aa",      "aab",  "bab", "é",    ":",    "hi\n!"};
    Request request;
    for (std::size_t n = 1 + below(6); n > 0; --n)
      request.prompt.push_back(TokenId{static_cast<int>(below(static_cast<std::size_t>(kVocabulary.n_tokens())))});
    for (std::size_t n = below(4); n > 0; --n) request.stop.push_back(kStops[below(kStops.size())]);
    request.n_tokens_max = static_cast<std::int32_t>(below(40));
    request.sampling.seed = random_();
    if (one_in(3)) request.pause_at = static_cast<std::int32_t>(below(12));
    EngineInfo info;
    info.n_cells = 64;
    auto valid = validate(request, info, kVocabulary, kSamplers);
    request_ = **valid;
    return *Generation::make(GenerationId{1}, std::move(*valid), kVocabulary, now_);
  }

  std::span<const TokenId> tokens() const { return generation_.journal().tokens(); }
  std::size_t n_tokens() const { return tokens().size(); }
  void apply(Trigger trigger, WaitReason reason = WaitReason::kNone) {
    ASSERT_TRUE(generation_.apply(trigger, reason, now_).has_value());
  }

  void live_through() {
    clone_at_ = request_.prompt.size() + below(20);
    while (generation_.state() != State::kFinished) {
      now_ = now_ + milliseconds(1);
      one_move();
      listener_.take(generation_);
      if (testing::Test::HasFatalFailure()) return;
      if (generation_.state() != State::kFinished) {
        if (n_tokens() == clone_at_ && !clone_) clone_.emplace(generation_.fold().clone());
        seen_[n_tokens()] = shown(generation_.fold(), tokens());
        const auto expected = expect(false);
        ASSERT_EQ(listener_.text, expected.text) << "held text went out, or text was held for nothing";
      }
      if (one_in(150)) {
        ended_from_outside_ = true;
        ++coverage_["cancelled while " + std::string(to_string(generation_.state()))];
        if (generation_.state() != State::kFinished) generation_.finish(EndReason::kCancelled, now_);
        listener_.take(generation_);
      }
    }
  }

  void one_move() {
    switch (generation_.state()) {
      case State::kQueued:
        if (one_in(4)) return apply(Trigger::kReachPause, WaitReason::kUser);
        find_in_pool();
        return apply(Trigger::kAdmit);
      case State::kRunning: return run_a_step();
      case State::kPausing: return apply(Trigger::kReachPause);
      case State::kPaused: return leave_pause();
      case State::kRestoring:
        return one_in(3) ? apply(Trigger::kReachPause, WaitReason::kPreempted) : apply(Trigger::kEndRestore);
      case State::kFinished: return;
    }
  }

  void find_in_pool() {
    if (generation_.computed() != 0) return;
    const bool has_row = generation_.has_logits();
    generation_.set_cached(static_cast<Position>(below(n_tokens() + (has_row ? 1 : 0))));
    if (has_row) ++coverage_[generation_.computed() == generation_.wanted() ? "row kept" : "row made again"];
  }

  void run_a_step() {
    if (generation_.has_logits()) {
      generation_.choose(generation_.take_logits(), now_);
      return;
    }
    if (one_in(12)) return apply(Trigger::kReachPause, one_in(2) ? WaitReason::kUser : WaitReason::kPreempted);
    const bool interrupted = one_in(8);
    if (interrupted) apply(Trigger::kAskPause, WaitReason::kUser);
    if (interrupted && one_in(2)) return;  // the step was aborted
    generation_.add_computed(static_cast<Position>(generation_.next_tokens(static_cast<Position>(1 + below(3))).size()),
                             now_);
    if (generation_.computed() < generation_.wanted()) return;
    const std::vector<float> logits = logits_of(tokens());
    if (generation_.pause_is_due() && !interrupted) {
      ++coverage_["pause_at"];
      generation_.hold_logits(logits);
      return apply(Trigger::kReachPause, WaitReason::kPauseAt);
    }
    if (!interrupted) return generation_.choose(logits, now_);
    generation_.hold_logits(logits);
  }

  void leave_pause() {
    const PauseRecord record = generation_.pause_record();
    ASSERT_EQ(record.n_bytes_sent + record.n_bytes_held, generation_.journal().text().size());
    ASSERT_EQ(record.at, static_cast<Position>(n_tokens()));
    if (record.n_bytes_held > 0) ++coverage_["paused with text held"];
    ++coverage_["paused " + std::string(to_string(record.reason))];
    if (one_in(6)) return apply(Trigger::kReachPause, WaitReason::kHuman);
    if (one_in(6)) return apply(Trigger::kStartRestore);
    const bool was_admitted = generation_.computed() > 0;
    if (was_admitted && one_in(2)) return apply(Trigger::kResume);
    generation_.trim_computed(0);
    apply(Trigger::kRequeue, WaitReason::kCells);
  }

  reference::Expected expect(bool finished) const {
    std::string prompt;
    for (const TokenId token : request_.prompt) prompt += text_bytes(kVocabulary, token);
    return reference::expect(prompt, generation_.journal().text(), request_.stop, finished);
  }

  void compare_events() {
    const reference::Expected expected = expect(true);
    ASSERT_EQ(listener_.text, expected.text);
    ASSERT_EQ(listener_.end->stop_string, expected.stop_string);
    const Journal& journal = generation_.journal();
    std::vector<TokenId> whole_or_cut;
    for (Position i = journal.n_prompt(); i < journal.size(); ++i) {
      const bool out = journal.bytes_end(i) <= expected.n_bytes_out || journal.bytes_begin(i) < expected.n_bytes_out;
      if (out && journal[i].token != kVocabulary.end()) whole_or_cut.push_back(journal[i].token);
    }
    std::vector<TokenId> heard;
    std::size_t n_bytes = 0;
    for (const JournalRow& row : listener_.rows) {
      heard.push_back(row.token);
      n_bytes += text_bytes(kVocabulary, row.token).size();
    }
    ASSERT_EQ(heard, whole_or_cut);
    ASSERT_EQ(n_bytes - listener_.n_bytes_cut, expected.n_bytes_out);
    ++coverage_["ended by " + std::string(to_string(generation_.end_reason()))];
    if (expected.stopped) ++coverage_["ended by a stop string"];
    if (listener_.n_bytes_cut > 0) ++coverage_["last row cut"];
    if (expected.text.size() != journal.text().size()) ++coverage_["text and raw bytes differ"];
  }

  void compare_folds() {
    const std::span<const JournalRow> rows = generation_.journal().rows();
    auto step_by_step = Fold(*revalidated(), kVocabulary);
    for (std::size_t n = 0; n <= rows.size(); ++n) {
      auto fresh = Fold(*revalidated(), kVocabulary);
      ASSERT_TRUE(fresh.replay(rows.first(n)).has_value());
      if (n > 0) {
        ASSERT_TRUE(step_by_step.push(rows[n - 1]).has_value());
      }
      ASSERT_EQ(shown(fresh, tokens().first(n)), shown(step_by_step, tokens().first(n)));
      if (clone_ && n > clone_at_) {
        ASSERT_TRUE(clone_->push(rows[n - 1]).has_value());
      }
      if (clone_ && n >= clone_at_) {
        ++coverage_["clone compared"];
        ASSERT_EQ(shown(*clone_, tokens().first(n)), shown(fresh, tokens().first(n)));
      }
      const auto seen = seen_.find(n);
      if (seen == seen_.end()) continue;
      ++coverage_["fold compared"];
      ASSERT_EQ(seen->second, shown(fresh, tokens().first(n)));
    }
  }

  Result<ValidRequest> revalidated() const {
    EngineInfo info;
    info.n_cells = 64;
    return validate(request_, info, kVocabulary, kSamplers);
  }

  void compare_with_undisturbed() {
    auto undisturbed = *Generation::make(GenerationId{2}, *revalidated(), kVocabulary, {});
    ASSERT_TRUE(undisturbed.apply(Trigger::kAdmit, WaitReason::kNone, {}).has_value());
    while (undisturbed.state() == State::kRunning) {
      undisturbed.add_computed(undisturbed.wanted() - undisturbed.computed(), {});
      undisturbed.choose(logits_of(undisturbed.journal().tokens()), {});
    }
    const std::span<const JournalRow> rows = undisturbed.journal().rows();
    if (!ended_from_outside_) {
      ASSERT_EQ(rows.size(), n_tokens());
      ASSERT_EQ(undisturbed.end_reason(), generation_.end_reason());
      Listener alone;
      alone.take(undisturbed);
      ASSERT_EQ(alone.text, listener_.text);
      ASSERT_EQ(alone.rows.size(), listener_.rows.size());
    }
    for (std::size_t i = 0; i < n_tokens(); ++i) {
      const JournalRow& row = generation_.journal().rows()[i];
      ASSERT_EQ(row.token, rows[i].token);
      ASSERT_EQ(row.carry, rows[i].carry);
      ASSERT_EQ(row.logprob, rows[i].logprob);
    }
  }

  // A sampler by itself, without journal, fold or generation: every row must hold what it said.
  void compare_with_plain_sampling() {
    const auto sampler = std::move(*kSamplers.make(request_.sampling));
    std::size_t n = 0;
    for (; n < request_.prompt.size(); ++n)
      ASSERT_TRUE(sampler->accept(tokens()[n], TokenRole::kPrompt, {}).has_value());
    for (; n < n_tokens(); ++n) {
      const auto choice = sampler->sample(logits_of(tokens().first(n)), static_cast<Position>(n));
      const JournalRow& row = generation_.journal().rows()[n];
      ASSERT_EQ(row.token, choice->token);
      ASSERT_EQ(row.carry, choice->carry);
      ASSERT_EQ(std::tuple(row.logprob, row.entropy, row.margin),
                std::tuple(choice->logprob, choice->entropy, choice->margin));
      ASSERT_EQ(row.origin, Origin::kSampled);
      ASSERT_TRUE(sampler->accept(choice->token, TokenRole::kGenerated, choice->carry).has_value());
    }
  }

  std::mt19937 random_;
  Coverage& coverage_;
  Instant now_;
  Request request_;
  Generation generation_;
  Listener listener_;
  std::map<std::size_t, Shown> seen_;  // by number of tokens
  std::size_t clone_at_ = 0;
  std::optional<Fold> clone_;
  bool ended_from_outside_ = false;
};

TEST(GenerationRandomTest, WhateverInterruptsItItSaysTheSame) {
  constexpr unsigned kLives = 3'000;
  Coverage coverage;
  for (unsigned seed = 0; seed < kLives; ++seed) {
    Life(seed, coverage).run();
    if (HasFatalFailure()) FAIL() << "seed " << seed;
  }
  const std::vector<std::pair<std::string, int>> at_least{
      {"ended by stop", 300},
      {"ended by length", 300},
      {"ended by a stop string", 200},
      {"ended by cancelled", 200},
      {"cancelled while queued", 10},
      {"cancelled while running", 50},
      {"cancelled while pausing", 20},
      {"cancelled while paused", 50},
      {"cancelled while restoring", 5},
      {"last row cut", 100},
      {"text and raw bytes differ", 500},
      {"pause_at", 200},
      {"paused user", 1'000},
      {"paused preempted", 500},
      {"paused human", 100},
      {"paused with text held", 500},
      {"row kept", 50},
      {"row made again", 200},
      {"clone compared", 5'000},
      {"fold compared", 20'000},
  };
  for (const auto& [what, n] : at_least) EXPECT_GE(coverage[what], n) << what;
}

}  // namespace
}  // namespace fermata
