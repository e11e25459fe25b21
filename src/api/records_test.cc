#include "api/records.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <limits>
#include <set>
#include <string>

#include "engine/fake/fake_engine.h"

namespace fermata::api {
namespace {

class InspectionObject : public ::testing::Test {
 protected:
  InspectionObject() {
    desk_.serve(core_, nullptr, "fake", "");
    seen_.has_logits = true;
    seen_.next = {{TokenId{65}, -0.5F}};
    seen_.next_entropy = 1.5F;
  }
  json::object of(std::vector<Scope> scopes) {
    return inspection_object(desk_, dossier_, seen_, {"key", "tenant", std::move(scopes)});
  }

  ManualClock clock_;
  boost::asio::io_context io_;
  Core core_{std::make_unique<FakeEngine>(), clock_};
  Desk desk_{io_.get_executor(), clock_, {}};
  Dossier dossier_{io_.get_executor()};  // in no pause: it gave way to others, or was resumed behind the look
  Inspection seen_;
};

TEST_F(InspectionObject, TellsAReviewerAloneWhatComesAfterTextThatIsHeld) {
  seen_.n_bytes_held = 3;
  const json::object of_user = of({Scope::kUse});
  EXPECT_EQ(of_user.at("withheld"), true);
  EXPECT_TRUE(of_user.at("next").get_array().empty());
  EXPECT_TRUE(of_user.at("entropy").is_null());
  EXPECT_EQ(of_user.at("has_logits"), true) << "that tells nothing";
  const json::object of_reviewer = of({Scope::kUse, Scope::kReview});
  EXPECT_EQ(of_reviewer.at("withheld"), false);
  EXPECT_EQ(of_reviewer.at("next").get_array().size(), 1u);
  EXPECT_EQ(of_reviewer.at("entropy"), 1.5);
}

TEST_F(InspectionObject, TellsAllWhatComesWhenNothingIsHeld) {
  const json::object object = of({Scope::kUse});
  EXPECT_EQ(object.at("withheld"), false);
  EXPECT_EQ(object.at("next").get_array().at(0).at("bytes"), (json::array{65}));
  EXPECT_TRUE(object.at("pause").is_null());
}

TEST_F(InspectionObject, SaysTokensAsLogprobsDo) {
  const Vocabulary& vocabulary = core_.vocabulary();
  const auto piece = [&](std::string_view text) { return vocabulary.tokenize(text, Markers::kPlain).front(); };
  const TokenId end = vocabulary.tokenize("<|end|>", Markers::kParse).front();
  seen_.next = {{piece("😀"), -0.1F}, {piece("\xf0\x9f\x98"), -2}, {end, -std::numeric_limits<float>::infinity()}};
  const json::array next = of({Scope::kUse}).at("next").get_array();
  EXPECT_EQ(next.at(0).at("token"), "😀");
  EXPECT_EQ(next.at(0).at("logprob"), -0.1) << "and not the double beside it";
  EXPECT_EQ(next.at(1).at("token"), R"(\xf0\x9f\x98)") << "part of a character is no text";
  EXPECT_EQ(next.at(1).at("bytes"), (json::array{0xF0, 0x9F, 0x98}));
  EXPECT_EQ(next.at(2).at("token"), "") << "a control token has no text";
  EXPECT_EQ(next.at(2).at("logprob"), -9999.0) << "JSON has no infinity";
  for (const json::value& one : next) EXPECT_EQ(one.get_object().size(), 4u);
}

TEST_F(InspectionObject, SaysWhetherThereAreLogitsHoweverManyTokensWereAskedFor) {
  seen_.next.clear();
  EXPECT_EQ(of({Scope::kUse}).at("has_logits"), true);
  EXPECT_EQ(of({Scope::kUse}).at("entropy"), 1.5);
  seen_.has_logits = false;
  seen_.next_entropy = 0;
  EXPECT_EQ(of({Scope::kUse}).at("has_logits"), false);
  EXPECT_TRUE(of({Scope::kUse}).at("entropy").is_null()) << "0 would be a certainty";
}

TEST_F(InspectionObject, AndSoDoesItsPauseThoughTheRowWasMissingWhenItWasFrozen) {
  PauseRecord record;
  record.at = 7;
  record.computed = 6;
  dossier_.recording.take({0, {}, StateEvent{State::kPaused, WaitReason::kUser, record}});
  const json::object looked = of({Scope::kUse});
  EXPECT_EQ(looked.at("pause").at("has_logits"), true);
  EXPECT_EQ(looked.at("pause").at("computed"), 7);
  seen_.has_logits = false;
  EXPECT_EQ(of({Scope::kUse}).at("pause").at("has_logits"), false);
  EXPECT_EQ(of({Scope::kUse}).at("pause").at("computed"), 6);
}

class EntryObject : public InspectionObject {
 protected:
  static std::set<std::string> keys_of(const json::object& object) {
    std::set<std::string> keys;
    for (const auto& [key, value] : object) keys.emplace(key);
    return keys;
  }
};

TEST_F(EntryObject, TellsWhatItsRequestCalledItWhereManyAreFollowed) {
  dossier_.recording.begin({});
  dossier_.recording.take({0, {}, StateEvent{State::kRunning, WaitReason::kNone, {}}});
  const std::set<std::string> plain{"type", "generation", "seq", "time"};
  EXPECT_EQ(keys_of(announced_object(desk_, dossier_, 1)), plain) << "it was called nothing";
  dossier_.head.session = "s";
  dossier_.client_id = "c";
  dossier_.options.tags = {"a", "b"};
  EXPECT_EQ(keys_of(entry_object(desk_, dossier_, 1)), plain) << "who follows it knows it";
  for (const json::object& one : {entry_object(desk_, dossier_, 0), announced_object(desk_, dossier_, 1)}) {
    EXPECT_EQ(one.at("session"), "s");
    EXPECT_EQ(one.at("client_id"), "c");
    EXPECT_EQ(one.at("tags"), (json::array{"a", "b"}));
  }
}

// Each has one place in the log, so that numbers have no gaps.
TEST_F(EntryObject, ABeginningIsToldOnceAfterTheResumeOfOneThatWasPausedBeforeIt) {
  const auto takes = [&](State state) { dossier_.recording.take({0, {}, StateEvent{state, WaitReason::kUser, {}}}); };
  dossier_.recording.begin({});
  for (const State state : {State::kPaused, State::kQueued, State::kRunning, State::kPaused, State::kRunning})
    takes(state);
  std::string told;
  for (const LogEntry& entry : dossier_.recording.log()) told += std::string(entry_type(entry)) + " ";
  EXPECT_EQ(told, "created paused resumed running paused resumed ");
}

}  // namespace
}  // namespace fermata::api
