#include "api/desk.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <latch>
#include <optional>

#include "engine/fake/fake_engine.h"

namespace fermata::api {
namespace {

namespace asio = boost::asio;

// A desk over a core with the fake engine. Everything of the desk runs in the test's thread, inside run() and until().
class DeskTest : public ::testing::Test {
 protected:
  DeskTest() { desk_.serve(core_, nullptr, "fake", ""); }

  template <class T>
  T run(asio::awaitable<T> work) {
    std::optional<T> result;
    asio::co_spawn(io_, into(std::move(work), result), asio::detached);
    until([&] { return result.has_value(); });
    return *std::move(result);
  }
  template <class T>
  static asio::awaitable<void> into(asio::awaitable<T> work, std::optional<T>& result) {
    result.emplace(co_await std::move(work));
  }
  template <class Condition>
  void until(Condition holds) {
    for (int i = 0; i < 100'000 && !holds(); ++i) io_.run_one_for(std::chrono::milliseconds(1));
    ASSERT_TRUE(holds()) << "nothing came of it";
  }

  static FakeOptions roomy() {
    FakeOptions options;
    options.n_cells = 1 << 17;
    return options;
  }

  // Endless, as far as a test goes, unless it is to be short.
  static constexpr std::int32_t kEndless = 1 << 16;
  static Call call(std::int32_t n_tokens = kEndless) {
    Call call;
    call.route = Route::kCompletions;
    call.has_prompt_tokens = true;
    call.prompt_tokens = {TokenId{1}, TokenId{2}};
    call.request.n_tokens_max = n_tokens;
    call.request.sampling.ignore_eos = true;
    call.has_seed = true;
    return call;
  }
  std::shared_ptr<Dossier> open(Call what, const Principal& who = {}, std::string digest = "a") {
    Result<Desk::Opened> opened = run(desk_.open(std::move(what), who, std::move(digest)));
    EXPECT_TRUE(opened.has_value()) << opened.error().message;
    return opened->dossier;
  }
  void until_ended(const std::shared_ptr<Dossier>& dossier) {
    until([&] { return dossier->recording.ended(); });
  }
  static Principal of_tenant(std::string tenant, std::string name = "key") {
    return {std::move(name), std::move(tenant), {Scope::kUse}};
  }

  SystemClock clock_;
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> works_{io_.get_executor()};
  Core core_{std::make_unique<FakeEngine>(roomy()), clock_};
  Desk desk_{io_.get_executor(), clock_, {}};
};

TEST_F(DeskTest, AGenerationIsRecordedToItsEnd) {
  const auto dossier = open(call(20));
  until_ended(dossier);
  EXPECT_EQ(dossier->recording.end()->n_generated, 20);
  EXPECT_EQ(dossier->recording.end()->reason, EndReason::kLength);
  EXPECT_TRUE(dossier->id().starts_with("gen_"));
  EXPECT_EQ(*desk_.find(dossier->id(), {}), dossier);
  EXPECT_EQ(*desk_.find(dossier->head.id, {}), dossier) << "by the id of its answer";
}

TEST_F(DeskTest, APauseHasATicketThatIsUsedOnce) {
  const auto dossier = open(call());
  ASSERT_TRUE(run(desk_.pause(dossier, WaitReason::kUser)));
  ASSERT_NE(dossier->recording.pause(), nullptr);
  const std::string id = dossier->recording.pause()->id;
  ASSERT_TRUE(run(desk_.pause(dossier, WaitReason::kUser)));
  EXPECT_EQ(dossier->recording.pause()->id, id) << "paused again: the same pause";
  EXPECT_EQ(*desk_.find_pause(id, {}), dossier);

  ASSERT_TRUE(run(desk_.resume(dossier, id, "body")));
  EXPECT_TRUE(run(desk_.resume(dossier, id, "body"))) << "the same call again";
  EXPECT_EQ(run(desk_.resume(dossier, id, "other")).error().code, Code::kAlreadyResumed);
  ASSERT_TRUE(run(desk_.cancel(dossier, EndReason::kCancelled)));
  EXPECT_EQ(run(desk_.pause(dossier, WaitReason::kUser)).error().code, Code::kWrongState);
  EXPECT_TRUE(run(desk_.resume(dossier, id, "body"))) << "its outcome does not change";
}

TEST_F(DeskTest, APauseThatIsOverCannotBeResumed) {
  const auto dossier = open(call());
  ASSERT_TRUE(run(desk_.pause(dossier, WaitReason::kUser)));
  const std::string first = dossier->recording.pause()->id;
  ASSERT_TRUE(run(desk_.resume(dossier, "", "a")));
  ASSERT_TRUE(run(desk_.pause(dossier, WaitReason::kUser)));
  const std::string second = dossier->recording.pause()->id;
  EXPECT_NE(first, second);
  EXPECT_EQ(run(desk_.resume(dossier, first, "b")).error().code, Code::kAlreadyResumed);
  EXPECT_EQ(run(desk_.resume(dossier, "pau_0", "b")).error().code, Code::kNotFound);
  EXPECT_EQ(dossier->recording.pause()->id, second) << "none of that let it go on";
}

TEST_F(DeskTest, AnotherTenantsGenerationIsNotThere) {
  const auto dossier = open(call(), of_tenant("acme"));
  ASSERT_TRUE(run(desk_.pause(dossier, WaitReason::kUser)));
  const std::string pause = dossier->recording.pause()->id;
  for (const std::string& name : {dossier->id(), dossier->head.id})
    EXPECT_EQ(desk_.find(name, of_tenant("other")).error().code, Code::kNotFound);
  EXPECT_EQ(desk_.find_pause(pause, of_tenant("other")).error().code, Code::kNotFound);
  EXPECT_TRUE(desk_.all(of_tenant("other")).empty());
  EXPECT_EQ(desk_.all(of_tenant("acme")).size(), 1u);
}

TEST_F(DeskTest, ARepeatIsTheSameGenerationAndAnotherBodyIsRefused) {
  Call once = call(5);
  once.fermata.idempotency_key = "k";
  const auto first = open(once, of_tenant("t"), "body");
  Result<Desk::Opened> again = run(desk_.open(once, of_tenant("t"), "body"));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->dossier, first);
  EXPECT_TRUE(again->is_repeat);
  EXPECT_EQ(run(desk_.open(once, of_tenant("t"), "other body")).error().code, Code::kIdempotency);
  EXPECT_NE(open(once, of_tenant("t", "another key"), "body"), first) << "keys count for themselves";
}

TEST_F(DeskTest, AKeyWhoseRunNobodyHeardIsFreeAgain) {
  Call once = call();
  once.fermata.idempotency_key = "k";
  const auto first = open(once, {}, "body");
  std::size_t cursor = 0;
  desk_.reader_comes(first, &cursor);
  desk_.reader_leaves(first, &cursor, true);
  until_ended(first);
  EXPECT_EQ(first->recording.end()->reason, EndReason::kDisconnected);
  EXPECT_NE(open(once, {}, "other body"), first);
}

TEST_F(DeskTest, ACancelThatCameFirstEndsTheRequestWithoutAToken) {
  ASSERT_TRUE(desk_.cancel_unborn("mine", of_tenant("t")));
  Call late = call();
  late.fermata.client_id = "mine";
  const auto others = open(late, of_tenant("u"));
  EXPECT_FALSE(others->recording.ended()) << "of another tenant";
  const auto dossier = open(late, of_tenant("t"));
  ASSERT_TRUE(dossier->recording.ended());
  EXPECT_EQ(dossier->recording.end()->reason, EndReason::kCancelled);
  EXPECT_EQ(dossier->recording.end()->n_generated, 0);
  EXPECT_FALSE(open(late, of_tenant("t"))->recording.ended()) << "it counts once";
}

TEST_F(DeskTest, AClientIdNamesOneOfThoseThatHaveNotEnded) {
  Call named = call();
  named.fermata.client_id = "mine";
  const auto first = open(named, of_tenant("t"));
  EXPECT_EQ(run(desk_.open(named, of_tenant("t"), "b")).error().code, Code::kDuplicate);
  const auto others = open(named, of_tenant("u"));
  EXPECT_EQ(*desk_.find("client:mine", of_tenant("t")), first);
  EXPECT_EQ(desk_.all(of_tenant("t")).size(), 1u) << "nothing is left of the refused one";
  ASSERT_TRUE(run(desk_.cancel(first, EndReason::kCancelled)));
  const auto second = open(named, of_tenant("t"));
  EXPECT_EQ(*desk_.find("client:mine", of_tenant("t")), second);
}

TEST_F(DeskTest, OfTwoAtOnceWithOneClientIdOneIsRefused) {
  Call named = call();  // the first must not end before the second comes
  named.fermata.client_id = "mine";
  std::optional<Result<Desk::Opened>> first, second;
  asio::co_spawn(io_, into(desk_.open(named, {}, "a"), first), asio::detached);
  asio::co_spawn(io_, into(desk_.open(named, {}, "b"), second), asio::detached);
  until([&] { return first && second; });
  EXPECT_NE(first->has_value(), second->has_value());
  EXPECT_EQ((first->has_value() ? *second : *first).error().code, Code::kDuplicate);
}

TEST_F(DeskTest, WhoLeavesBeforeItsTurnAsksForNothing) {
  // All threads are taken, so that a request has to wait.
  std::latch open_door{1};
  std::vector<std::optional<std::optional<int>>> blocked(2);
  const auto wait = [&] {
    open_door.wait();
    return 0;
  };
  for (auto& one : blocked) asio::co_spawn(io_, into(desk_.lanes().run(1, nullptr, wait), one), asio::detached);
  io_.poll();
  const auto leaver = std::make_shared<Leaver>();
  std::optional<Result<Desk::Opened>> left, stays;
  asio::co_spawn(io_, into(desk_.open(call(), {}, "a", leaver), left), asio::detached);
  Call goes_on = call(3);
  goes_on.fermata.on_disconnect = OnDisconnect::kContinue;
  asio::co_spawn(io_, into(desk_.open(goes_on, {}, "b", leaver), stays), asio::detached);
  io_.poll();
  EXPECT_EQ(desk_.lanes().n_waiting(), 2u);
  leaver->leave();
  until([&] { return left.has_value(); });
  EXPECT_EQ(left->error().code, Code::kAborted);
  EXPECT_EQ(desk_.lanes().n_waiting(), 1u) << "who asked to go on without its client does";
  open_door.count_down();
  until([&] { return stays && blocked[0] && blocked[1]; });
  EXPECT_TRUE(stays->has_value());
  EXPECT_EQ(desk_.all({}).size(), 1u);
}

TEST_F(DeskTest, WhoFollowsIsToldTheEnd) {
  std::string told;
  const std::uint64_t handle = desk_.follow([&](const Dossier&, std::size_t) { told += "e"; }, [&] { told += "."; });
  until_ended(open(call(3)));
  EXPECT_EQ(told.find('.'), std::string::npos);
  desk_.end_following();
  EXPECT_TRUE(told.size() > 1 && told.find('.') == told.size() - 1) << told;
  desk_.unfollow(handle);
  desk_.end_following();
  EXPECT_TRUE(told.ends_with('.') && !told.ends_with(".."));
}

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
  EXPECT_NE(first->recording.pause(), nullptr);
  until_ended(second);
  EXPECT_NE(first->recording.pause(), nullptr);
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
  for (int i = 0; i < 200; ++i) io_.run_one_for(std::chrono::milliseconds(1));
  EXPECT_EQ(queued->core_id, kNoGeneration);
  ASSERT_TRUE(run(desk_.cancel(third, EndReason::kCancelled)));
  until_ended(queued);
  EXPECT_EQ(queued->recording.end()->reason, EndReason::kLength);
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

TEST_F(DeskTest, WhatIsForgottenIsGoneAndNotUnknown) {
  DeskOptions options;
  options.finished_kept = milliseconds(0);
  Desk desk(io_.get_executor(), clock_, options);
  desk.serve(core_, nullptr, "fake", "");
  const auto opened = run(desk.open(call(3), of_tenant("t"), "a"));
  ASSERT_TRUE(opened);
  const std::string id = opened->dossier->id();
  until_ended(opened->dossier);
  desk.sweep();
  EXPECT_EQ(desk.find(id, of_tenant("t")).error().code, Code::kGone);
  EXPECT_EQ(desk.find(id, of_tenant("u")).error().code, Code::kNotFound);
}

TEST_F(DeskTest, AReaderThatLagsPausesItsGenerationUntilItHasCaughtUp) {
  const auto dossier = open(call(5000));
  std::size_t cursor = 0;
  desk_.reader_comes(dossier, &cursor);
  until([&] { return dossier->recording.state() == State::kPaused || dossier->recording.ended(); });
  ASSERT_FALSE(dossier->recording.ended()) << "it went on for a reader that takes nothing";
  EXPECT_EQ(dossier->recording.wait_reason(), WaitReason::kSlowReader);
  while (!dossier->recording.ended()) {
    until([&] { return cursor < dossier->recording.log().size() || dossier->recording.ended(); });
    cursor = dossier->recording.log().size();
    desk_.reader_caught_up(dossier);
  }
  EXPECT_EQ(dossier->recording.text().rows.size(), 5000u);
  desk_.reader_leaves(dossier, &cursor, false);
}

TEST_F(DeskTest, ADrainingDeskTakesNoMore) {
  const auto dossier = open(call());
  desk_.begin_drain();
  EXPECT_EQ(run(desk_.open(call(), {}, "b")).error().code, Code::kDraining);
  EXPECT_EQ(desk_.n_running(), 1u);
  ASSERT_TRUE(run(desk_.cancel(dossier, EndReason::kShutdown)));
  EXPECT_EQ(desk_.n_alive(), 0u);
}

TEST_F(DeskTest, BadRequestsLeaveNothingBehind) {
  Call other_model = call();
  other_model.model = "gpt-x";
  EXPECT_EQ(run(desk_.open(other_model, {}, "a")).error().code, Code::kNotFound);
  Call too_long = call();
  too_long.prompt_tokens.assign((1 << 17) + 1, TokenId{1});
  EXPECT_EQ(run(desk_.open(too_long, {}, "a")).error().code, Code::kTooLarge);
  Call chat = call();
  chat.route = Route::kChat;
  EXPECT_EQ(run(desk_.open(chat, {}, "a")).error().code, Code::kUnsupported);
  EXPECT_TRUE(desk_.all({}).empty());
}

}  // namespace
}  // namespace fermata::api
