#include "generation/state.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "generation/states_doc.h"

namespace fermata {
namespace {

// The whole table once more, by hand and by rows: what each trigger leads to from each state; what is not here is
// refused.
const std::map<State, std::map<Trigger, State>> kExpected{
    {State::kQueued,
     {{Trigger::kAdmit, State::kRunning},
      {Trigger::kStartRestore, State::kRestoring},
      {Trigger::kReachPause, State::kPaused},
      {Trigger::kFinish, State::kFinished}}},
    {State::kRunning,
     {{Trigger::kAskPause, State::kPausing},
      {Trigger::kReachPause, State::kPaused},
      {Trigger::kFinish, State::kFinished}}},
    {State::kPausing, {{Trigger::kReachPause, State::kPaused}, {Trigger::kFinish, State::kFinished}}},
    {State::kPaused,
     {{Trigger::kReachPause, State::kPaused},
      {Trigger::kResume, State::kRunning},
      {Trigger::kRequeue, State::kQueued},
      {Trigger::kStartRestore, State::kRestoring},
      {Trigger::kFinish, State::kFinished}}},
    {State::kRestoring,
     {{Trigger::kEndRestore, State::kRunning},
      {Trigger::kReachPause, State::kPaused},
      {Trigger::kFinish, State::kFinished}}},
    {State::kFinished, {}},
};

TEST(StateTest, EveryPairOfStateAndTriggerDoesWhatTheTableSaysOrIsRefused) {
  int n_allowed = 0;
  int n_refused = 0;
  for (std::size_t s = 0; s < kStates; ++s) {
    for (std::size_t t = 0; t < kTriggers; ++t) {
      const auto from = static_cast<State>(s);
      const auto trigger = static_cast<Trigger>(t);
      const auto& row = kExpected.at(from);
      const auto entry = row.find(trigger);
      const auto next = next_state(from, trigger);
      SCOPED_TRACE(std::string(to_string(from)) + " " + std::string(to_string(trigger)));
      ASSERT_EQ(next.has_value(), entry != row.end());
      if (next) {
        EXPECT_EQ(*next, entry->second);
      }
      ++(next ? n_allowed : n_refused);
    }
  }
  EXPECT_EQ(n_allowed, 17);
  EXPECT_EQ(n_refused, 31);
  EXPECT_EQ(transitions().size(), 17u);
}

TEST(StateTest, EveryStateCanBeReachedAndCanEnd) {
  std::set<State> reached{State::kQueued};
  for (std::size_t round = 0; round < kStates; ++round)
    for (const Transition& transition : transitions())
      if (reached.contains(transition.from)) reached.insert(transition.to);
  EXPECT_EQ(reached.size(), kStates);
  for (const State state : reached)
    EXPECT_EQ(next_state(state, Trigger::kFinish).has_value(), state != State::kFinished) << to_string(state);
}

template <class Enum>
void expect_distinct_names(std::size_t n) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < n; ++i) names.insert(to_string(static_cast<Enum>(i)));
  EXPECT_EQ(names.size(), n);
}

TEST(StateTest, NamesAreDistinctAndThoseOfTheWire) {
  expect_distinct_names<State>(kStates);
  expect_distinct_names<Trigger>(kTriggers);
  expect_distinct_names<WaitReason>(kWaitReasons);
  expect_distinct_names<EndReason>(kEndReasons);
  EXPECT_EQ(to_string(State::kRestoring), "restoring");
  EXPECT_EQ(to_string(WaitReason::kPauseAt), "pause_at");
  EXPECT_EQ(to_string(EndReason::kContentFilter), "content_filter");
}

TEST(StateTest, PausesThatSomebodyAskedForNeedAResume) {
  std::set<WaitReason> asked;
  for (std::size_t i = 0; i < kWaitReasons; ++i)
    if (needs_resume(static_cast<WaitReason>(i))) asked.insert(static_cast<WaitReason>(i));
  EXPECT_EQ(asked, (std::set{WaitReason::kUser, WaitReason::kNewMessage, WaitReason::kPauseAt, WaitReason::kRule,
                             WaitReason::kHuman, WaitReason::kTool, WaitReason::kSlowReader}));
}

TEST(StateTest, TheCommittedPageIsTheOneWrittenFromTheTable) {
  std::ifstream file(FERMATA_STATES_DOC);
  ASSERT_TRUE(file.good()) << FERMATA_STATES_DOC;
  std::stringstream content;
  content << file.rdbuf();
  EXPECT_EQ(content.str(), states_doc()) << "run: fermata_states_doc > docs/states.md";
}

}  // namespace
}  // namespace fermata
