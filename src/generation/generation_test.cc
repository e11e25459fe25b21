#include "generation/generation.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "generation/test_listener.h"
#include "generation/test_model.h"

namespace fermata {
namespace {

using test::Listener;

const test::PieceVocabulary kVocabulary({"Hi", "Us", "er", "er:", "\n", "\nUser", ":", " of P", "aris", "User",
                                         "\xF0\x9F", "\x98\x80", "\xE4\xBD", "\xA0", "a", "b", "a\xF0\x9F\x98"});
const test::HashSamplerFactory kSamplers;

// A generation whose tokens the test dictates.
class Scripted {
 public:
  explicit Scripted(Request request) : generation_(make(std::move(request))) {}

  static Request request(std::vector<std::string> stop = {}, std::int32_t n_tokens_max = -1) {
    Request request;
    request.prompt = {kVocabulary.find("a"), kVocabulary.find("b")};
    request.stop = std::move(stop);
    request.n_tokens_max = n_tokens_max;
    request.sampling.temperature = 0;
    return request;
  }

  Generation& operator*() { return generation_; }
  Generation* operator->() { return &generation_; }
  Listener& heard() {
    listener_.take(generation_);
    return listener_;
  }
  Instant now() const { return now_; }
  void pass(std::int64_t ms) { now_ = now_ + milliseconds(ms); }

  Scripted& admit() { return apply(Trigger::kAdmit); }
  Scripted& apply(Trigger trigger, WaitReason reason = WaitReason::kNone) {
    EXPECT_TRUE(generation_.apply(trigger, reason, now_).has_value());
    return *this;
  }
  Scripted& compute() {
    generation_.add_computed(generation_.wanted() - generation_.computed(), now_);
    return *this;
  }
  Scripted& say(TokenId token) {
    compute();
    generation_.choose(logits(token), now_);
    return *this;
  }
  Scripted& say(const std::vector<std::string>& pieces) {
    for (const std::string& piece : pieces) {
      EXPECT_NE(kVocabulary.find(piece), kVocabulary.end()) << piece;
      if (generation_.state() == State::kRunning) say(kVocabulary.find(piece));
    }
    return *this;
  }
  static std::vector<float> logits(TokenId token) {
    std::vector<float> row(static_cast<std::size_t>(kVocabulary.n_tokens()), -1);
    row[static_cast<std::size_t>(raw(token))] = 1;
    return row;
  }

 private:
  static Generation make(Request request) {
    EngineInfo info;
    info.n_vocab = kVocabulary.n_tokens();
    info.n_cells = 100;
    auto valid = validate(std::move(request), info, kVocabulary, kSamplers);
    return *Generation::make(GenerationId{1}, std::move(*valid), kVocabulary, {});
  }

  Instant now_;
  Generation generation_;
  Listener listener_;
};

TEST(GenerationTest, AStopStringCutsTextAndRows) {
  Scripted it(Scripted::request({"ari"}));
  it.admit().say({"Hi", " of P", "aris", "a"});
  const Listener& heard = it.heard();
  EXPECT_EQ(heard.text, "Hi of P");
  EXPECT_EQ(heard.rows.size(), 2u);  // nothing of "aris" was released
  EXPECT_EQ(heard.end->reason, EndReason::kStop);
  EXPECT_EQ(heard.end->stop_string, "ari");
  EXPECT_EQ(heard.end->n_generated, 3);
  EXPECT_EQ(it->journal().text(), "Hi of Paris");
}

TEST(GenerationTest, ARowThatAStopStringCutsInTheMiddleGoesOutOnceWithWhatWasCut) {
  Scripted it(Scripted::request({"Paris"}));
  it.admit().say({"Hi", " of P", "aris"});
  EXPECT_EQ(it.heard().text, "Hi of ");
  EXPECT_EQ(it.heard().rows.size(), 2u);
  EXPECT_EQ(it.heard().n_bytes_cut, 1u);
}

TEST(GenerationTest, RowsWaitForTheTextThatIsHeld) {
  Scripted it(Scripted::request({"\nUser:"}));
  it.admit().say({"Hi", "\n", "Us"});
  EXPECT_EQ(it.heard().rows.size(), 1u);
  EXPECT_EQ(it.heard().text, "Hi");
  it.say({"a"});
  EXPECT_EQ(it.heard().rows.size(), 4u);
  EXPECT_EQ(it.heard().deltas.back(), "\nUsa");
}

// CASES E2: held text at each kind of end.
TEST(GenerationTest, HeldTextComesOutOnceAtATrueEnd) {
  const auto held = [](std::int32_t n_tokens_max = -1) {
    Scripted it(Scripted::request({"\nUser:"}, n_tokens_max));
    it.admit().say({"Hi", "\nUser"});
    return it;
  };
  Scripted by_eog = held();
  by_eog.say(kVocabulary.end());
  EXPECT_EQ(by_eog.heard().text, "Hi\nUser");
  EXPECT_EQ(by_eog.heard().rows.size(), 2u);  // not the end-of-generation token
  EXPECT_EQ(by_eog.heard().end->reason, EndReason::kStop);
  EXPECT_EQ(by_eog.heard().end->n_generated, 3);
  EXPECT_EQ(by_eog.heard().end->stop_string, "");

  Scripted by_length = held(2);
  EXPECT_EQ(by_length.heard().text, "Hi\nUser");
  EXPECT_EQ(by_length.heard().end->reason, EndReason::kLength);

  for (const EndReason reason : {EndReason::kCancelled, EndReason::kTimeout, EndReason::kShutdown}) {
    Scripted by_us = held();
    by_us->finish(reason, by_us.now());
    EXPECT_EQ(by_us.heard().text, "Hi\nUser");
    EXPECT_EQ(by_us.heard().end->reason, reason);
  }

  Scripted by_filter = held();
  by_filter->finish(EndReason::kContentFilter, by_filter.now());
  EXPECT_EQ(by_filter.heard().text, "Hi");
  EXPECT_EQ(by_filter.heard().rows.size(), 1u);
}

TEST(GenerationTest, HeldTextStaysHeldOverAPauseAndIsCountedInItsRecord) {
  for (const bool completes : {true, false}) {
    Scripted it(Scripted::request({"\nUser:"}));
    it.admit().say({"Hi", "\nUser"});
    it.compute();
    it->hold_logits(Scripted::logits(kVocabulary.find(completes ? ":" : "a")));
    it.apply(Trigger::kReachPause, WaitReason::kUser);
    EXPECT_EQ(it.heard().text, "Hi");
    const PauseRecord record = it.heard().pauses.back();
    EXPECT_EQ(record.n_bytes_sent, 2u);
    EXPECT_EQ(record.n_bytes_held, 5u);
    EXPECT_EQ(record.at, 4);
    EXPECT_EQ(record.computed, 4);
    EXPECT_TRUE(record.has_logits);
    EXPECT_EQ(record.reason, WaitReason::kUser);
    it.apply(Trigger::kResume);
    it->choose(it->take_logits(), it.now());
    EXPECT_EQ(it.heard().text, completes ? "Hi" : "Hi\nUsera");
    EXPECT_EQ(it.heard().end.has_value(), completes);
  }
}

// CASES E5: paused, cancelled and ended by length after every single token of split characters.
TEST(GenerationTest, CharactersComeOutWholeWhereverItPausesOrEnds) {
  const std::vector<std::string> tokens{"a\xF0\x9F\x98", "\x98\x80", "\xE4\xBD", "\xA0", "\xF0\x9F", "\x98\x80", "a"};
  const std::vector<std::string> texts{"", "a", "a😘?", "a😘?", "a😘?你", "a😘?你", "a😘?你😀", "a😘?你😀a"};
  for (std::size_t n = 1; n <= tokens.size(); ++n) {
    std::string expected;
    for (const char c : texts[n]) c == '?' ? expected += kReplacementCharacter : expected += c;
    const std::vector<std::string> said(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n));

    Scripted cancelled{Scripted::request()};
    cancelled.admit().say(said);
    cancelled->finish(EndReason::kCancelled, cancelled.now());
    EXPECT_EQ(cancelled.heard().text, expected);

    Scripted ended(Scripted::request({}, static_cast<std::int32_t>(n)));
    ended.admit().say(tokens);
    EXPECT_EQ(ended.heard().text, expected);

    Scripted paused{Scripted::request()};
    paused.admit().say(said).apply(Trigger::kReachPause, WaitReason::kUser);
    EXPECT_EQ(paused.heard().text, expected);
    paused.apply(Trigger::kResume).say({tokens.begin() + static_cast<std::ptrdiff_t>(n), tokens.end()});
    std::string whole;
    for (const char c : texts.back()) c == '?' ? whole += kReplacementCharacter : whole += c;
    EXPECT_EQ(paused.heard().text, whole);
    EXPECT_EQ(paused.heard().rows.size(), tokens.size());
  }
}

TEST(GenerationTest, APromptThatEndsInMidCharacter) {
  Request request = Scripted::request();
  request.prompt.push_back(kVocabulary.find("\xF0\x9F"));
  Scripted it(request);
  it.admit().say({"\x98\x80", "a"});
  EXPECT_EQ(it.heard().text, "😀a");
  EXPECT_EQ(it->journal().text(),
            "\x98\x80"
            "a");
}

TEST(GenerationTest, ControlTokensHaveNoTextAndTheEndTokenDoesNotGoOut) {
  Scripted it(Scripted::request({"<special>"}));
  it.admit().say({"Hi"}).say(kVocabulary.control()).say({"a"}).say(kVocabulary.end());
  EXPECT_EQ(it.heard().text, "Hia");
  EXPECT_EQ(it.heard().rows.size(), 3u);
  EXPECT_EQ(it->journal().n_generated(), 4);
  EXPECT_EQ(it->journal().text(), "Hia");
}

TEST(GenerationTest, ExactlyAsManyTokensAsAskedFor) {
  for (const std::int32_t n : {1, 2, 3}) {
    Scripted it(Scripted::request({}, n));
    it.admit().say({"a", "b", "a", "b", "a"});
    EXPECT_EQ(it.heard().end->reason, EndReason::kLength);
    EXPECT_EQ(it.heard().end->n_generated, n);
  }
  Scripted nothing(Scripted::request({}, 0));
  nothing.admit().compute();
  nothing->choose(Scripted::logits(kVocabulary.find("a")), nothing.now());
  EXPECT_EQ(nothing.heard().end->reason, EndReason::kLength);
  EXPECT_EQ(nothing.heard().end->n_generated, 0);
  EXPECT_EQ(nothing->journal().size(), 2);
}

TEST(GenerationTest, AFailingSamplerOrGrammarEndsItWithTheError) {
  Scripted no_token{Scripted::request()};
  no_token.admit().say({"Hi"}).compute();
  no_token->choose(
      std::vector<float>(static_cast<std::size_t>(kVocabulary.n_tokens()), -std::numeric_limits<float>::infinity()),
      no_token.now());
  EXPECT_EQ(no_token.heard().end->reason, EndReason::kError);
  EXPECT_EQ(no_token.heard().end->error.code, Code::kGrammar);
  EXPECT_EQ(no_token.heard().text, "Hi");

  Request request = Scripted::request();
  request.sampling.grammar = std::string(1, static_cast<char>(raw(kVocabulary.find("b"))));
  Scripted refused(request);
  refused.admit().say({"Hi", "b"});
  EXPECT_EQ(refused.heard().end->error.code, Code::kGrammar);
  EXPECT_EQ(refused->journal().n_generated(), 1);  // the refused token is not in the journal
}

TEST(GenerationTest, TheRequestsPauseIsDueOnceAndAResumeGoesPastIt) {
  for (const std::int32_t at : {0, 2}) {
    Request request = Scripted::request({}, 4);
    request.pause_at = at;
    Scripted it(request);
    EXPECT_FALSE(it->pause_is_due());
    it.admit();
    EXPECT_FALSE(it->pause_is_due()) << "its prompt is not computed";
    for (std::int32_t i = 0; i < at; ++i) it.say({"a"});
    it.compute();
    ASSERT_TRUE(it->pause_is_due());
    it.apply(Trigger::kReachPause, WaitReason::kPreempted);  // gave way just then: the pause is still to come
    it.apply(Trigger::kResume);
    ASSERT_TRUE(it->pause_is_due());
    it.apply(Trigger::kReachPause, WaitReason::kPauseAt);
    it.apply(Trigger::kResume);
    EXPECT_FALSE(it->pause_is_due());
    it.say({"a", "a", "a", "a"});
    EXPECT_EQ(it.heard().end->n_generated, 4);
    EXPECT_EQ(it.heard().pauses.back().reason, WaitReason::kPauseAt);
  }
}

TEST(GenerationTest, APauseWhileItWaitsDoesNotUseUpTheRequestsOwn) {
  Request request = Scripted::request();
  request.pause_at = 0;
  Scripted it(request);
  it.apply(Trigger::kReachPause, WaitReason::kUser).apply(Trigger::kRequeue, WaitReason::kQueue).admit();
  it->add_computed(1, it.now());
  it.apply(Trigger::kReachPause, WaitReason::kUser).apply(Trigger::kResume).compute();
  EXPECT_TRUE(it->pause_is_due());
}

TEST(GenerationTest, EveryRefusedTriggerChangesAndSaysNothing) {
  const auto in_state = [](State state) {
    Scripted it{Scripted::request()};
    if (state == State::kQueued) return it;
    it.admit();
    if (state == State::kPausing) it.apply(Trigger::kAskPause, WaitReason::kUser);
    if (state == State::kPaused || state == State::kRestoring) it.apply(Trigger::kReachPause, WaitReason::kUser);
    if (state == State::kRestoring) it.apply(Trigger::kStartRestore);
    if (state == State::kFinished) it->finish(EndReason::kCancelled, it.now());
    return it;
  };
  for (std::size_t s = 0; s < kStates; ++s) {
    for (std::size_t t = 0; t < kTriggers; ++t) {
      const auto state = static_cast<State>(s);
      const auto trigger = static_cast<Trigger>(t);
      if (trigger == Trigger::kFinish) continue;
      SCOPED_TRACE(std::string(to_string(state)) + " " + std::string(to_string(trigger)));
      Scripted it = in_state(state);
      ASSERT_EQ(it->state(), state);
      const std::uint64_t n_events = it.heard().n_events;
      const WaitReason reason = it->wait_reason();
      const auto applied = it->apply(trigger, WaitReason::kTool, it.now());
      const auto next = next_state(state, trigger);
      ASSERT_EQ(applied.has_value(), next.has_value());
      EXPECT_EQ(it->state(), next.value_or(state));
      EXPECT_EQ(it.heard().n_events, n_events + (next ? 1 : 0));
      if (!next) {
        EXPECT_EQ(applied.error().code, Code::kWrongState);
        EXPECT_EQ(it->wait_reason(), reason);
      }
    }
    if (static_cast<State>(s) == State::kFinished) continue;
    Scripted it = in_state(static_cast<State>(s));
    it->finish(EndReason::kReplaced, it.now());
    EXPECT_EQ(it.heard().end->reason, EndReason::kReplaced);
    EXPECT_EQ(it->end_reason(), EndReason::kReplaced);
    EXPECT_DEATH(it->finish(EndReason::kCancelled, it.now()), "check failed");
  }
}

TEST(GenerationTest, ReasonsAreKeptUntilThereIsAnother) {
  Scripted it{Scripted::request()};
  EXPECT_EQ(it->wait_reason(), WaitReason::kQueue);
  it.admit();
  EXPECT_EQ(it->wait_reason(), WaitReason::kNone);
  it.apply(Trigger::kAskPause, WaitReason::kRule).apply(Trigger::kReachPause);
  EXPECT_EQ(it->wait_reason(), WaitReason::kRule);
  it.apply(Trigger::kStartRestore);
  EXPECT_EQ(it->wait_reason(), WaitReason::kRule);
  it.apply(Trigger::kReachPause, WaitReason::kHuman);
  EXPECT_EQ(it->wait_reason(), WaitReason::kHuman);
  it.apply(Trigger::kRequeue, WaitReason::kCells);
  EXPECT_EQ(it->wait_reason(), WaitReason::kCells);
}

TEST(GenerationTest, RunningTimeLeavesOutWaiting) {
  Scripted it{Scripted::request()};
  it.pass(1000);
  it.admit().pass(10);
  it.say({"a"});
  EXPECT_EQ(it->last_progress(), it.now());
  it.apply(Trigger::kAskPause, WaitReason::kUser).pass(5);
  it.apply(Trigger::kReachPause).pass(1000);
  EXPECT_EQ(it->running_time(it.now()), milliseconds(15));
  EXPECT_EQ(it->pause_record().reach, milliseconds(5));
  it.apply(Trigger::kStartRestore).pass(1000);
  it.apply(Trigger::kReachPause).apply(Trigger::kRequeue).pass(1000);
  it.admit();
  EXPECT_EQ(it->last_progress(), it.now()) << "waiting is no lack of progress";
  it.pass(3);
  EXPECT_EQ(it->running_time(it.now()), milliseconds(18));
  it->finish(EndReason::kCancelled, it.now());
  it.pass(1000);
  EXPECT_EQ(it->running_time(it.now()), milliseconds(18));
}

TEST(GenerationTest, ThePauseIsTimedFromTheCallIfThatWasNoted) {
  Scripted it{Scripted::request()};
  it.admit();
  const Instant asked = it.now();
  it.pass(7);
  it->note_pause_asked(asked);
  it.apply(Trigger::kAskPause, WaitReason::kUser).pass(2);
  it.apply(Trigger::kReachPause);
  EXPECT_EQ(it.heard().pauses.back().reach, milliseconds(9));
  it.apply(Trigger::kResume).pass(100);
  it.apply(Trigger::kReachPause, WaitReason::kPauseAt);  // nobody called
  EXPECT_EQ(it.heard().pauses.back().reach, milliseconds(0));
}

TEST(GenerationTest, ComputedCatchesUpWithWanted) {
  Request request = Scripted::request();
  request.prompt.assign(10, kVocabulary.find("a"));
  Scripted it(request);
  it->set_cached(4);
  it.admit();
  EXPECT_EQ(it->next_tokens(3).size(), 3u);
  EXPECT_EQ(it->next_tokens(100).size(), 6u);
  it->add_computed(6, it.now());
  EXPECT_TRUE(it->next_tokens(3).empty());
  it->choose(Scripted::logits(kVocabulary.find("b")), it.now());
  EXPECT_EQ(it->next_tokens(3).size(), 1u);
  EXPECT_EQ(it->next_tokens(3)[0], kVocabulary.find("b"));
  it.apply(Trigger::kReachPause, WaitReason::kPreempted);
  it->trim_computed(0);
  it.apply(Trigger::kRequeue);
  it->set_cached(8);
  it.admit();
  EXPECT_EQ(it->computed(), 8);
  it->finish(EndReason::kCancelled, it.now());
  EXPECT_EQ(it.heard().end->n_cached, 4) << "what the first admission found";
}

TEST(GenerationTest, AHeldLogitsRowOutlivesItsCellsWhilePausedButIsMadeAgainToRun) {
  Scripted it{Scripted::request()};
  it.admit().compute();
  it->hold_logits(Scripted::logits(kVocabulary.find("a")));
  it.apply(Trigger::kReachPause, WaitReason::kUser);
  it->set_cached(0);
  EXPECT_TRUE(it->has_logits());
  it.apply(Trigger::kRequeue, WaitReason::kCells);
  it->set_cached(1);
  it.admit();
  EXPECT_FALSE(it->has_logits());
  it.say({"a"});
  EXPECT_EQ(it.heard().text, "a");

  Scripted all_back{Scripted::request()};
  all_back.admit().compute();
  all_back->hold_logits(Scripted::logits(kVocabulary.find("b")));
  all_back.apply(Trigger::kReachPause, WaitReason::kUser);
  all_back->set_cached(0);
  all_back.apply(Trigger::kRequeue);
  all_back->set_cached(2);
  all_back.admit();
  ASSERT_TRUE(all_back->has_logits());
  all_back->choose(all_back->take_logits(), all_back.now());
  EXPECT_EQ(all_back.heard().text, "b");
}

TEST(GenerationDeathTest, MisuseEndsTheProcess) {
  const std::vector<float> logits = Scripted::logits(kVocabulary.find("a"));
  Scripted it{Scripted::request()};
  EXPECT_DEATH(it->choose(logits, it.now()), "kRunning");
  it.admit();
  EXPECT_DEATH(it->choose(logits, it.now()), "computed_ == wanted") << "its prompt is not computed";
  EXPECT_DEATH(it->hold_logits(logits), "computed_ == wanted");
  EXPECT_DEATH(it->add_computed(3, it.now()), "check failed");
  it.say({"a"});
  EXPECT_DEATH(it->choose(logits, it.now()), "computed_ == wanted") << "one row of logits for two tokens";
  it.compute();
  it->hold_logits(logits);
  EXPECT_DEATH(it->choose(logits, it.now()), "logits_.empty") << "the held row would be used again";
  EXPECT_DEATH(it->apply(Trigger::kFinish, WaitReason::kNone, it.now()).has_value(), "kFinish");
}

}  // namespace
}  // namespace fermata
