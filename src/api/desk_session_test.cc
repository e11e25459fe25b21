// At most one generation of a session runs, whatever is paused, resumed, cancelled or held.
#include "api/desk_fixture.h"
#include "base/limits.h"

namespace fermata::api {
namespace {

class SessionTest : public DeskTest {
 protected:
  static Call in_session(OnNewMessage policy, std::int32_t n_tokens = kEndless) {
    Call message = call(n_tokens);
    message.fermata.session = "talk";
    message.fermata.on_new_message = policy;
    return message;
  }
};

TEST_F(SessionTest, ANewMessageReplacesTheAnswerBeforeIt) {
  const auto first = open(in_session(OnNewMessage::kCancel));
  const auto second = open(in_session(OnNewMessage::kCancel, 5));
  EXPECT_EQ(first->recording.end()->reason, EndReason::kReplaced);
  until_ended(second);
  EXPECT_EQ(second->recording.end()->reason, EndReason::kLength);
}

TEST_F(SessionTest, OrPausesIt) {
  const auto first = open(in_session(OnNewMessage::kPause));
  const auto second = open(in_session(OnNewMessage::kPause, 5));
  ASSERT_NE(first->recording.pause(), nullptr);
  EXPECT_EQ(first->recording.wait_reason(), WaitReason::kNewMessage);
  until_ended(second);
  ASSERT_NE(first->recording.pause(), nullptr);
  const std::string id = first->recording.pause()->id;
  ASSERT_TRUE(run(desk_.pause(first, WaitReason::kUser)));
  EXPECT_EQ(first->recording.pause()->id, id) << "paused again: the same pause";
  ASSERT_TRUE(run(desk_.resume(first, id, "a")));
  EXPECT_EQ(first->recording.pause(), nullptr);
}

TEST_F(SessionTest, WhatAUserPausedBeforeStaysTheUsers) {
  const auto first = open(in_session(OnNewMessage::kPause));
  ASSERT_TRUE(run(desk_.pause(first, WaitReason::kUser)));
  until_ended(open(in_session(OnNewMessage::kPause, 5)));
  EXPECT_EQ(first->recording.wait_reason(), WaitReason::kUser);
}

TEST_F(SessionTest, APauseLeavesWhatIsQueuedInTheQueue) {
  const auto first = open(in_session(OnNewMessage::kQueue));
  const auto queued = open(in_session(OnNewMessage::kQueue, 5));
  const auto third = open(in_session(OnNewMessage::kPause));
  EXPECT_NE(first->recording.pause(), nullptr) << "it ran";
  EXPECT_FALSE(queued->recording.ended()) << "nobody asked to replace it";
  until([&] { return third->recording.state() == State::kRunning; });

  // The first goes, but the third runs: it is not yet the turn of the one between them.
  ASSERT_TRUE(run(desk_.cancel(first, EndReason::kCancelled)));
  const std::size_t n_told = third->recording.log().size();
  until([&] { return third->recording.log().size() >= n_told + 20; });
  EXPECT_EQ(queued->core_id, kNoGeneration);
  ASSERT_TRUE(run(desk_.cancel(third, EndReason::kCancelled)));
  until_ended(queued);
  EXPECT_EQ(queued->recording.end()->reason, EndReason::kLength);
}

TEST_F(SessionTest, WhatIsHeldDoesNotBeginWhenItsTurnComes) {
  const auto first = open(in_session(OnNewMessage::kQueue));
  const auto queued = open(in_session(OnNewMessage::kQueue, 5));
  ASSERT_TRUE(run(desk_.pause(queued, WaitReason::kUser)));
  ASSERT_TRUE(queued->is_held());
  EXPECT_EQ(queued->recording.wait_reason(), WaitReason::kUser);
  ASSERT_TRUE(run(desk_.cancel(first, EndReason::kCancelled)));
  const auto beside = open(call(50));
  until_ended(beside);
  EXPECT_EQ(queued->core_id, kNoGeneration);
  EXPECT_EQ(desk_.n_running(), 0u) << "a drain does not wait for it";
  ASSERT_TRUE(run(desk_.resume(queued, "", "a")));
  until_ended(queued);
  EXPECT_EQ(queued->recording.end()->reason, EndReason::kLength);
}

TEST_F(SessionTest, TheSameResumeOfAHeldOneAgainIsTheSameOutcome) {
  const auto first = open(in_session(OnNewMessage::kQueue));
  const auto queued = open(in_session(OnNewMessage::kQueue));
  EXPECT_EQ(run(desk_.resume(queued, "", "a")).error().code, Code::kWrongState) << "nobody holds it";
  ASSERT_TRUE(run(desk_.pause(queued, WaitReason::kUser)));
  EXPECT_EQ(*run(desk_.resume(queued, "", "a")), 1u);
  EXPECT_EQ(*run(desk_.resume(queued, "", "a")), 1u);
  EXPECT_EQ(run(desk_.resume(queued, "", "b")).error().code, Code::kWrongState);
  ASSERT_TRUE(run(desk_.cancel(first, EndReason::kCancelled)));
  until([&] { return queued->recording.state() == State::kRunning; });
  EXPECT_EQ(*run(desk_.resume(queued, "", "a")), 1u) << "though it has begun";
}

// Many whose turn comes at once: what finds no room in the mailbox has its turn still.
TEST_F(SessionTest, WhoFindsNoRoomInItsTurnTriesAgain) {
  const auto first = open(in_session(OnNewMessage::kQueue));
  const auto queued = open(in_session(OnNewMessage::kQueue, 5));
  const auto beside = open(call());  // for it the engine thread goes on stepping, and stands at the gate
  until([&] { return first->recording.state() == State::kRunning && beside->goes_on(); });
  gate_.close();
  std::optional<Result<void>> cancelled;
  asio::co_spawn(io_, into(desk_.cancel(first, EndReason::kCancelled), cancelled), asio::detached);
  io_.poll();
  gate_.let_pass(1);  // the cancel is taken
  fill_work_lane();
  until([&] { return cancelled.has_value(); });
  for (int i = 0; i < 10; ++i) io_.run_one_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(queued->recording.ended());
  EXPECT_EQ(queued->core_id, kNoGeneration);
  open_gate();
  until_ended(queued);
  EXPECT_EQ(queued->recording.end()->reason, EndReason::kLength);
}

TEST_F(SessionTest, WhatIsHeldWhileItMakesRoomDoesNotBeginEither) {
  const auto first = open(in_session(OnNewMessage::kCancel));
  gate_.close();
  std::optional<Result<Desk::Opened>> opened;
  asio::co_spawn(io_, into(desk_.open(in_session(OnNewMessage::kCancel), {}, "a"), opened), asio::detached);
  until([&] { return desk_.all({}).size() == 2; });
  const auto second = desk_.all({}).back();
  ASSERT_TRUE(run(desk_.pause(second, WaitReason::kUser)));
  open_gate();
  until([&] { return opened.has_value(); });
  EXPECT_TRUE(first->recording.ended());
  EXPECT_EQ(second->core_id, kNoGeneration);
}

TEST_F(SessionTest, OfTwoResumedAtOnceOneRuns) {
  const auto first = open(in_session(OnNewMessage::kPause));
  const auto second = open(in_session(OnNewMessage::kPause));
  ASSERT_TRUE(run(desk_.pause(second, WaitReason::kUser)));
  std::optional<Result<std::size_t>> one, other;
  asio::co_spawn(io_, into(desk_.resume(first, "", "a"), one), asio::detached);
  asio::co_spawn(io_, into(desk_.resume(second, "", "a"), other), asio::detached);
  until([&] { return one && other; });
  EXPECT_TRUE(*one);
  EXPECT_EQ(other->error().code, Code::kWrongState);
}

TEST_F(SessionTest, WhatCannotBePausedNowEndsTheNewMessageAtOnce) {
  const auto first = open(in_session(OnNewMessage::kPause));
  gate_.close();
  fill_control_lane();
  for (const OnNewMessage policy : {OnNewMessage::kPause, OnNewMessage::kCancel})
    EXPECT_EQ(run(desk_.open(in_session(policy), {}, "a")).error().code, Code::kBusy);
  EXPECT_EQ(desk_.all({}).size(), 1u) << "nothing is left of them";
  open_gate();
  until_ended(open(in_session(OnNewMessage::kCancel, 5)));
}

TEST_F(SessionTest, WhoReadsOneThatCannotStartIsTold) {
  const auto first = open(in_session(OnNewMessage::kCancel));
  const auto beside = open(call());  // keeps the engine in steps
  gate_.close();
  Call next = in_session(OnNewMessage::kCancel, 5);
  next.fermata.idempotency_key = "k";
  std::optional<Result<Desk::Opened>> opened;
  asio::co_spawn(io_, into(desk_.open(next, {}, "body"), opened), asio::detached);
  until([&] { return desk_.all({}).size() == 3; });
  const Result<Desk::Opened> again = run(desk_.open(next, {}, "body"));
  ASSERT_TRUE(again && again->is_repeat);
  gate_.let_pass(1);  // the cancel is taken; its answer is not looked at yet
  fill_work_lane();
  until([&] { return opened.has_value(); });
  EXPECT_EQ(opened->error().code, Code::kBusy);
  ASSERT_TRUE(again->dossier->recording.ended());
  EXPECT_EQ(again->dossier->recording.end()->reason, EndReason::kError);
  EXPECT_EQ(again->dossier->recording.end()->error.code, Code::kBusy);
  open_gate();
  const auto later = open(next, {}, "body");
  EXPECT_NE(later, again->dossier) << "the key is free again";
  until_ended(later);
}

TEST_F(SessionTest, AReplacementReplacesWhatIsQueuedToo) {
  const auto first = open(in_session(OnNewMessage::kQueue));
  const auto queued = open(in_session(OnNewMessage::kQueue, 5));
  const auto third = open(in_session(OnNewMessage::kCancel, 5));
  EXPECT_EQ(first->recording.end()->reason, EndReason::kReplaced);
  EXPECT_EQ(queued->recording.end()->reason, EndReason::kReplaced);
  until_ended(third);
}

TEST_F(SessionTest, OrWaitsForAllBeforeIt) {
  const auto first = open(in_session(OnNewMessage::kQueue, 2000));
  const auto second = open(in_session(OnNewMessage::kQueue, 5));
  const auto third = open(in_session(OnNewMessage::kQueue, 5));
  ASSERT_TRUE(run(desk_.cancel(second, EndReason::kCancelled)));
  EXPECT_EQ(second->recording.end()->n_generated, 0);
  until_ended(third);
  EXPECT_TRUE(first->recording.ended());
  EXPECT_EQ(third->recording.text().rows.size(), 5u);
}

TEST_F(SessionTest, WhoseReaderLeftGoesOnOnceNoOtherRuns) {
  Call message = in_session(OnNewMessage::kPause, 5000);
  message.fermata.on_disconnect = OnDisconnect::kContinue;
  const auto dossier = open(message);
  std::size_t cursor = 0;
  desk_.reader_comes(dossier, &cursor);
  until([&] { return dossier->waits_for_its_reader(); });
  const auto other = open(in_session(OnNewMessage::kPause));
  desk_.reader_leaves(dossier, &cursor, true);
  desk_.sweep();
  EXPECT_EQ(await(core_.status(dossier->core_id))->state, State::kPaused) << "two would run";
  ASSERT_TRUE(run(desk_.cancel(other, EndReason::kCancelled)));
  desk_.sweep();
  until_ended(dossier);
}

TEST_F(SessionTest, OfTwoWhoseReadersCaughtUpOneGoesOn) {
  std::vector<std::shared_ptr<Dossier>> both;
  std::size_t cursors[2] = {};
  for (std::size_t& cursor : cursors) {
    both.push_back(open(in_session(OnNewMessage::kPause)));
    desk_.reader_comes(both.back(), &cursor);
    until([&] { return both.back()->waits_for_its_reader(); });
  }
  for (std::size_t i = 0; i < both.size(); ++i) cursors[i] = both[i]->recording.log().size();
  desk_.sweep();  // sees both before the engine answers
  EXPECT_TRUE(both[0]->goes_on());
  EXPECT_FALSE(both[1]->goes_on());
  for (const auto& one : both) {
    ASSERT_TRUE(run(desk_.cancel(one, EndReason::kCancelled)));
    desk_.reader_leaves(one, &cursors[one == both[0] ? 0 : 1], false);
  }
}

// One that ends several paused ones takes a while; another that only pauses may begin meanwhile.
TEST_F(SessionTest, AtMostOneRunsOfThoseThatComeAtOnce) {
  std::vector<std::shared_ptr<Dossier>> all;
  for (int i = 0; i < 6; ++i) all.push_back(open(in_session(OnNewMessage::kPause)));
  std::vector<std::optional<Result<Desk::Opened>>> opened(6);
  for (std::size_t i = 0; i < opened.size(); ++i) {
    const Call message = in_session(i % 2 == 0 ? OnNewMessage::kCancel : OnNewMessage::kPause);
    asio::co_spawn(io_, into(desk_.open(message, {}, "a"), opened[i]), asio::detached);
  }
  const auto n_running = [&] {
    std::size_t n = 0;
    for (const auto& one : desk_.all({})) n += one->goes_on() ? 1 : 0;
    return n;
  };
  std::size_t n_most = 0;
  until([&] {
    n_most = std::max(n_most, n_running());
    return std::all_of(opened.begin(), opened.end(), [](const auto& one) { return one.has_value(); });
  });
  EXPECT_EQ(n_most, 1u);
}

TEST_F(SessionTest, ACapHoldsForThoseThatComeAtOnce) {
  const auto first = open(in_session(OnNewMessage::kQueue));
  while (desk_.n_alive() + 1 < limits::kAlivePerKeyMax) open(in_session(OnNewMessage::kQueue));  // these only wait
  std::vector<std::optional<Result<Desk::Opened>>> opened(2);
  for (auto& one : opened) asio::co_spawn(io_, into(desk_.open(call(), {}, "a"), one), asio::detached);
  until([&] { return opened[0] && opened[1]; });
  EXPECT_NE(opened[0]->has_value(), opened[1]->has_value());
  EXPECT_EQ(desk_.n_alive(), limits::kAlivePerKeyMax);
}

// Before the first byte of its stream: the engine would refuse it behind the 200.
TEST_F(SessionTest, WhatAllKeysHaveIsCapped) {
  const auto waiting = [&](const Principal& who) {
    Call next = call();
    next.fermata.session = who.name;
    next.fermata.on_new_message = OnNewMessage::kQueue;
    return desk_.open(next, who, "a");
  };
  for (const char* name : {"one", "other"})
    for (std::size_t i = 0; i < limits::kAlivePerKeyMax; ++i)
      ASSERT_TRUE(run(waiting(of_tenant("", name))).has_value()) << i;
  ASSERT_EQ(desk_.n_alive(), limits::kGenerationsMax);
  const auto refused = run(waiting(of_tenant("", "third")));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::kBusy);
  EXPECT_EQ(refused.error().message, "too many generations are alive; try again later");
}

TEST_F(DeskTest, WhoWaitsForItsSessionAndAskedForAPauseIsHeldWhenItsClientGoes) {
  Call queued = call(5);
  queued.fermata.session = "s";
  queued.fermata.on_new_message = OnNewMessage::kQueue;
  queued.fermata.on_disconnect = OnDisconnect::kPause;
  Call running = call();
  running.fermata.session = "s";
  const auto before = open(running);
  const auto waiting = open(queued, {}, "b");
  std::size_t cursor = 0;
  desk_.reader_comes(waiting, &cursor);
  desk_.reader_leaves(waiting, &cursor, true);
  EXPECT_FALSE(waiting->recording.ended());
  EXPECT_TRUE(waiting->is_held());
  ASSERT_TRUE(run(desk_.cancel(before, EndReason::kCancelled)).has_value());
  ASSERT_TRUE(run(desk_.resume(waiting, "", "r")).has_value());
  until_ended(waiting);
  EXPECT_EQ(waiting->recording.end()->n_generated, 5);
}

// The refusal comes before the new message does anything to the others of its session.
TEST_F(DeskTest, ANewMessageThatIsRefusedReplacesNothing) {
  Call message = call();
  message.fermata.session = "s";
  const auto answer = open(message);
  until([&] { return answer->recording.state() == State::kRunning; });
  gate_.close();
  std::vector<std::shared_ptr<Dossier>> others;
  for (std::size_t i = 0; i < limits::kWaitingMax; ++i)
    others.push_back(open(call(1), of_tenant("t", std::to_string(i)), std::to_string(i)));
  const auto refused = run(desk_.open(message, {}, "b"));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::kBusy);
  EXPECT_FALSE(answer->recording.ended());
  gate_.open();
  for (const auto& other : others) until_ended(other);
  EXPECT_TRUE(answer->goes_on());
}

}  // namespace
}  // namespace fermata::api
