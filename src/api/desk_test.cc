#include <latch>
#include <new>

#include "api/desk_fixture.h"
#include "base/limits.h"

namespace fermata::api {
namespace {

struct ThrowingTemplate final : ChatTemplate {
  Result<std::string> apply(const std::vector<ChatMessage>&) const override { throw std::bad_alloc(); }
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

TEST_F(DeskTest, AnEngineThatDoesNotAnswerIsSilent) {
  const auto runs = open(call());
  gate_.close();
  fill_work_lane();  // what is refused is no answer of the engine
  desk_.sweep();
  until([&] { return desk_.silent_for() >= milliseconds(5); });
  open_gate();
  ASSERT_TRUE(run(desk_.cancel(runs, EndReason::kCancelled)));
  bool has_answered = false;  // and is asked anew
  until([&] { return has_answered = has_answered || desk_.silent_for().ns == 0; });
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
  until([&] { return desk_.n_running() == 1; });
  ASSERT_FALSE(second) << "it is being prepared";
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
  desk_.follow([&](const Dossier&, std::size_t) { told += "e"; }, [&] { told += "."; });
  until_ended(open(call(3)));
  EXPECT_EQ(told.find('.'), std::string::npos);
  desk_.end_following();
  EXPECT_TRUE(told.size() > 1 && told.find('.') == told.size() - 1) << told;
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
    EXPECT_FALSE(desk.may_come(name, of_tenant("t"))) << name << ": a cancel must not end the next one of that name";
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

TEST_F(DeskTest, OnlyWhatIsPausedIsResumed) {
  const auto dossier = open(call());
  until([&] { return dossier->recording.state() == State::kRunning; });
  for (const char* body : {"", "a"}) {
    const Result<std::size_t> refused = run(desk_.resume(dossier, "", body));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kWrongState);
    EXPECT_EQ(refused.error().message, "it is running, and in no pause: there is nothing to resume");
  }
  ASSERT_TRUE(run(desk_.pause(dossier, WaitReason::kUser)));
  const std::string first = dossier->recording.pause()->id;
  ASSERT_TRUE(run(desk_.resume(dossier, "", "a")));
  EXPECT_TRUE(run(desk_.resume(dossier, "", "a"))) << "the same call again: its first outcome";
  EXPECT_TRUE(run(desk_.resume(dossier, first, "a"))) << "and by its name";
  EXPECT_EQ(run(desk_.resume(dossier, "", "b")).error().code, Code::kWrongState);
  EXPECT_EQ(run(desk_.resume(dossier, first, "b")).error().code, Code::kAlreadyResumed);
}

// And goes on behind it, though nobody had heard of that pause.
TEST_F(DeskTest, AResumeThatOvertakesTheNewsOfAPauseIsMeantForIt) {
  const auto dossier = open(call());
  until([&] { return dossier->recording.state() == State::kRunning; });
  gate_.close();
  std::optional<Result<void>> paused;
  std::optional<Result<std::size_t>> resumed;
  asio::co_spawn(io_, into(desk_.pause(dossier, WaitReason::kUser), paused), asio::detached);
  asio::co_spawn(io_, into(desk_.resume(dossier, "", "a"), resumed), asio::detached);
  io_.poll();
  EXPECT_EQ(dossier->recording.pause(), nullptr);
  open_gate();
  until([&] { return paused && resumed; });
  ASSERT_TRUE(*resumed) << resumed->error().message;
  EXPECT_EQ(dossier->recording.pause(), nullptr) << "it goes on";
  const std::size_t behind = dossier->recording.tickets().front().log_end;
  EXPECT_EQ(**resumed, behind);
  until([&] { return dossier->recording.log().size() > behind + 5; });
  EXPECT_EQ(*run(desk_.resume(dossier, "", "a")), behind) << "the same call again: the same outcome";
}

// The engine answers it as it finds it: what happens before the answer is read is nobody's resume.
TEST_F(DeskTest, AResumeOfARunningOneDoesNotUseALaterPause) {
  const auto dossier = open(call());
  until([&] { return dossier->recording.state() == State::kRunning; });
  for (const char* body : {"a", "b", "a"}) {
    std::optional<Result<std::size_t>> resumed;
    gate_.close();
    asio::co_spawn(io_, into(desk_.resume(dossier, "", body), resumed), asio::detached);
    io_.poll();
    ASSERT_FALSE(resumed) << "the engine thread stands";
    gate_.open();
    ASSERT_TRUE(core_.status(dossier->core_id).wait(seconds(20))) << "it answered the resume before";
    ASSERT_TRUE(core_.pause(dossier->core_id).wait(seconds(20)));
    until([&] { return resumed.has_value(); });
    ASSERT_TRUE(dossier->recording.pause());
    EXPECT_EQ(dossier->recording.pause()->resumed_with, "") << body;
    const Result<std::size_t> goes_on = run(desk_.resume(dossier, dossier->recording.pause()->id, "a"));
    ASSERT_TRUE(goes_on);
    EXPECT_EQ(*goes_on, dossier->recording.tickets().back().log_end);
    EXPECT_FALSE(dossier->recording.pause());
  }
}

// Not by a name that the client knows: so the engine is told which pause is meant.
TEST_F(DeskTest, AResumeOfAPauseThatIsOverDoesNotEndTheNextOne) {
  const auto dossier = open(call());
  ASSERT_TRUE(run(desk_.pause(dossier, WaitReason::kUser)));
  const std::string first = dossier->recording.pause()->id;
  // Resumed and paused anew while the desk does not look.
  ASSERT_TRUE(core_.resume(dossier->core_id).wait(seconds(20)));
  ASSERT_TRUE(core_.pause(dossier->core_id).wait(seconds(20)));
  const Result<std::size_t> stale = run(desk_.resume(dossier, first, "a"));
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().code, Code::kStale);
  ASSERT_TRUE(dossier->recording.pause());
  EXPECT_NE(dossier->recording.pause()->id, first);
  EXPECT_TRUE(run(desk_.resume(dossier, "", "a")));
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
  EXPECT_EQ(run(desk_.open(other_model, {}, "a")).error().code, Code::kModelNotFound);
  Call too_long = call();
  too_long.prompt_tokens.assign((1 << 17) + 1, TokenId{1});
  EXPECT_EQ(run(desk_.open(too_long, {}, "a")).error().code, Code::kContextLength);
  Call chat = call();
  chat.route = Route::kChat;
  EXPECT_EQ(run(desk_.open(chat, {}, "a")).error().code, Code::kUnsupported);
  EXPECT_TRUE(desk_.all({}).empty());
}

}  // namespace
}  // namespace fermata::api
