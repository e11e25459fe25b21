#include "api/desk.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <condition_variable>
#include <latch>
#include <mutex>
#include <new>
#include <optional>

#include "base/limits.h"
#include "engine/fake/fake_engine.h"

namespace fermata::api {
namespace {

namespace asio = boost::asio;

// The engine thread passes it in each step; a test may hold it there.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++n_came_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return n_came_ <= n_may_pass_; });
  }
  // Returns when the engine thread stands here: there must be something that runs.
  void close() { let_pass(1); }
  // The one that stands here, and `n` - 1 more; the next one stands.
  void let_pass(std::uint64_t n) {
    std::unique_lock lock(mutex_);
    n_may_pass_ = n_may_pass_ == kAll ? n_came_ : n_may_pass_ + n;
    changed_.notify_all();
    changed_.wait(lock, [this] { return n_came_ > n_may_pass_; });
  }
  void open() {
    std::lock_guard lock(mutex_);
    n_may_pass_ = kAll;
    changed_.notify_all();
  }

 private:
  static constexpr std::uint64_t kAll = UINT64_MAX;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t n_came_ = 0;
  std::uint64_t n_may_pass_ = kAll;
};

struct ThrowingTemplate final : ChatTemplate {
  Result<std::string> apply(const std::vector<ChatMessage>&) const override { throw std::bad_alloc(); }
};

// A desk over a core with the fake engine. Everything of the desk runs in the test's thread, inside run() and until().
class DeskTest : public ::testing::Test {
 protected:
  DeskTest() { desk_.serve(core_, nullptr, "fake", ""); }
  ~DeskTest() override { gate_.open(); }

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

  FakeOptions roomy() {
    FakeOptions options;
    options.n_cells = 1 << 17;
    options.on_compute = [this](std::size_t) { gate_.pass(); };
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

  // While the engine thread stands at the gate: no more calls of this kind are taken.
  void fill_work_lane() {
    while (core_.status(kNobody).poll() == std::nullopt) {
    }
  }
  void fill_control_lane() {
    while (core_.pause(kNobody).poll() == std::nullopt) {
    }
  }
  // Returns when what filled the lanes was taken.
  void open_gate() {
    gate_.open();
    while (await(core_.status(kNobody)).error().code == Code::kBusy ||
           await(core_.pause(kNobody)).error().code == Code::kBusy) {
    }
  }
  static constexpr GenerationId kNobody{UINT64_MAX};

  SystemClock clock_;
  Gate gate_;
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

TEST_F(DeskTest, AResumeThatFailedDoesNotUseItsPause) {
  const auto dossier = open(call());
  const auto runs = open(call());
  ASSERT_TRUE(run(desk_.pause(dossier, WaitReason::kUser)));
  const std::string id = dossier->recording.pause()->id;
  gate_.close();
  fill_work_lane();
  EXPECT_EQ(run(desk_.resume(dossier, id, "body")).error().code, Code::kBusy);
  open_gate();
  EXPECT_TRUE(run(desk_.resume(dossier, id, "other body")));
  EXPECT_EQ(dossier->recording.pause(), nullptr) << "it goes on";
}

TEST_F(DeskTest, ACancelThatWasNotTakenIsNotWaitedFor) {
  const auto dossier = open(call());
  gate_.close();
  fill_control_lane();
  EXPECT_EQ(run(desk_.cancel(dossier, EndReason::kCancelled)).error().code, Code::kBusy);
  EXPECT_EQ(desk_.longest_unreached().ns, 0) << "or health would say that the engine is stuck";
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

TEST_F(DeskTest, ACancelByANameUsedAgainHitsTheOneThatComes) {
  Call named = call(3);
  named.fermata.client_id = "story";
  const auto first = open(named);
  EXPECT_FALSE(desk_.may_come("client:story", {}));
  until_ended(first);
  EXPECT_FALSE(desk_.may_come("client:story", {})) << "nobody asked again";
  std::optional<Result<Desk::Opened>> second;
  asio::co_spawn(io_, into(desk_.open(named, {}, "b"), second), asio::detached);
  io_.poll_one();
  ASSERT_FALSE(second);
  EXPECT_TRUE(desk_.may_come("client:story", {}));
  ASSERT_TRUE(desk_.cancel_unborn("story", {}));
  until([&] { return second.has_value(); });
  ASSERT_TRUE((*second)->dossier->recording.ended());
  EXPECT_EQ((*second)->dossier->recording.end()->n_generated, 0);
  EXPECT_FALSE(desk_.may_come("client:story", {})) << "all have come";
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
  std::vector<std::optional<Result<int>>> blocked(2);
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

TEST_F(DeskTest, WhatFailsInPreparingIsNotWaitedForAtTheEnd) {
  const ThrowingTemplate thrower;
  Desk desk(io_.get_executor(), clock_, {});
  desk.serve(core_, &thrower, "fake", "");
  Call chat = call();
  chat.route = Route::kChat;
  chat.messages = {{"user", "x"}};
  EXPECT_EQ(run(desk.open(chat, {}, "a")).error().code, Code::kEngine);
  EXPECT_EQ(desk.n_running(), 0u);
}

TEST_F(DeskTest, WorkIsMoreThanTheBytesOfTexts) {
  Call many;
  many.messages.assign(1000, {"user", "x"});
  EXPECT_GT(n_work(many), limits::kLongJobBytes) << "a template looks at each of them";
  Call few;
  few.messages = {{"user", std::string(10'000, 'x')}};
  EXPECT_LT(n_work(few), limits::kLongJobBytes);
  few.request.sampling.json_schema.assign(10'000, ' ');
  EXPECT_GT(n_work(few), limits::kLongJobBytes);
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

TEST_F(SessionTest, WhatIsHeldDoesNotBeginWhenItsTurnComes) {
  const auto first = open(in_session(OnNewMessage::kQueue));
  const auto queued = open(in_session(OnNewMessage::kQueue, 5));
  EXPECT_FALSE(desk_.hold(first)) << "it runs";
  ASSERT_TRUE(desk_.hold(queued));
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

TEST_F(SessionTest, WhatIsHeldWhileItMakesRoomDoesNotBeginEither) {
  const auto first = open(in_session(OnNewMessage::kCancel));
  gate_.close();
  std::optional<Result<Desk::Opened>> opened;
  asio::co_spawn(io_, into(desk_.open(in_session(OnNewMessage::kCancel), {}, "a"), opened), asio::detached);
  until([&] { return desk_.all({}).size() == 2; });
  const auto second = desk_.all({}).back();
  ASSERT_TRUE(desk_.hold(second));
  open_gate();
  until([&] { return opened.has_value(); });
  EXPECT_TRUE(first->recording.ended());
  EXPECT_EQ(second->core_id, kNoGeneration);
}

TEST_F(SessionTest, OfTwoResumedAtOnceOneRuns) {
  const auto first = open(in_session(OnNewMessage::kPause));
  const auto second = open(in_session(OnNewMessage::kPause));
  ASSERT_TRUE(run(desk_.pause(second, WaitReason::kUser)));
  std::optional<Result<void>> one, other;
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

TEST_F(DeskTest, WhatIsForgottenIsGoneAndNotUnknown) {
  DeskOptions options;
  options.finished_kept = milliseconds(0);
  Desk desk(io_.get_executor(), clock_, options);
  desk.serve(core_, nullptr, "fake", "");
  Call named = call(3);
  named.fermata.client_id = "mine";
  named.fermata.idempotency_key = "k";
  const auto opened = run(desk.open(named, of_tenant("t"), "a"));
  ASSERT_TRUE(opened);
  const Dossier& dossier = *opened->dossier;
  until_ended(opened->dossier);
  desk.sweep();
  for (const std::string& name : {dossier.id(), dossier.head.id, std::string("client:mine")}) {
    EXPECT_EQ(desk.find(name, of_tenant("t")).error().code, Code::kGone) << name;
    EXPECT_EQ(desk.find(name, of_tenant("u")).error().code, Code::kNotFound) << name;
  }
  EXPECT_EQ(run(desk.open(named, of_tenant("t"), "a")).error().code, Code::kGone) << "it does not run again";
  EXPECT_EQ(run(desk.open(named, of_tenant("t"), "b")).error().code, Code::kIdempotency);
}

TEST_F(DeskTest, PromptsAndMetadataCountInWhatIsKept) {
  DeskOptions options;
  options.finished_bytes_max = 100'000;
  Desk desk(io_.get_executor(), clock_, options);
  desk.serve(core_, nullptr, "fake", "");
  Call long_prompt = call(1);
  long_prompt.prompt_tokens.assign(10'000, TokenId{1});
  Call much_said = call(1);
  much_said.fermata.metadata = {{"note", std::string(10'000, 'x')}};
  for (const Call& what : {long_prompt, much_said}) {
    for (int i = 0; i < 4; ++i) {
      const auto opened = run(desk.open(what, of_tenant("t"), "a"));
      ASSERT_TRUE(opened);
      until_ended(opened->dossier);
    }
    EXPECT_GE(desk.all(of_tenant("t")).size(), 4u);
    desk.sweep();
    EXPECT_LE(desk.all(of_tenant("t")).size(), 2u);
  }
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

TEST_F(DeskTest, WhoseReaderLeftBeforeItsPauseWasReachedGoesOn) {
  Call goes_on = call(2000);
  goes_on.fermata.on_disconnect = OnDisconnect::kContinue;
  const auto dossier = open(goes_on);
  std::size_t cursor = 0;
  desk_.reader_comes(dossier, &cursor);
  gate_.close();
  gate_.let_pass(limits::kReaderLagMax + 10);
  io_.poll();  // its lag is seen, and the pause is asked for
  EXPECT_EQ(dossier->recording.state(), State::kRunning);
  desk_.reader_leaves(dossier, &cursor, true);
  open_gate();
  until_ended(dossier);
  EXPECT_EQ(dossier->recording.end()->reason, EndReason::kLength);
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

TEST_F(DeskTest, ADrainingDeskTakesNoMore) {
  const auto dossier = open(call());
  desk_.begin_drain();
  EXPECT_EQ(run(desk_.open(call(), {}, "b")).error().code, Code::kDraining);
  EXPECT_EQ(desk_.n_running(), 1u);
  ASSERT_TRUE(run(desk_.cancel(dossier, EndReason::kShutdown)));
  EXPECT_EQ(desk_.n_alive(), 0u);
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
