#include "api/sessions.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace fermata::api {
namespace {

using Kind = Move::Kind;
constexpr std::array kPolicies{OnNewMessage::kCancel, OnNewMessage::kPause, OnNewMessage::kQueue};
constexpr auto kW = Standing::kWaits;
constexpr auto kH = Standing::kHeld;
constexpr auto kG = Standing::kGoesOn;
constexpr auto kP = Standing::kPaused;
constexpr auto kE = Standing::kEnded;

Move last_of(OnNewMessage policy, const std::vector<Standing>& session) {
  return next_move(policy, session, session.size() - 1);
}

TEST(NextMove, WhoComesAloneStarts) {
  for (const OnNewMessage policy : kPolicies) {
    EXPECT_EQ(last_of(policy, {kW}), (Move{Kind::kStart, 0}));
    EXPECT_EQ(last_of(policy, {kE, kE, kW}), (Move{Kind::kStart, 2})) << "the others have ended";
  }
}

TEST(NextMove, ACancelEndsAllBeforeItNearestFirst) {
  EXPECT_EQ(last_of(OnNewMessage::kCancel, {kP, kG, kW}), (Move{Kind::kCancel, 1}));
  EXPECT_EQ(last_of(OnNewMessage::kCancel, {kP, kE, kW}), (Move{Kind::kCancel, 0}));
  EXPECT_EQ(last_of(OnNewMessage::kCancel, {kW, kE, kW}), (Move{Kind::kCancel, 0})) << "what is queued too";
  EXPECT_EQ(next_move(OnNewMessage::kCancel, std::array{kE, kW, kG}, 1), (Move{Kind::kWait, 2}))
      << "what came later came with its own choice";
}

TEST(NextMove, APausePausesWhatGoesOnAndNothingElse) {
  EXPECT_EQ(last_of(OnNewMessage::kPause, {kG, kW, kH, kW}), (Move{Kind::kPause, 0}));
  EXPECT_EQ(last_of(OnNewMessage::kPause, {kP, kW, kH, kW}), (Move{Kind::kStart, 3}));
  EXPECT_EQ(next_move(OnNewMessage::kPause, std::array{kP, kW, kG}, 1), (Move{Kind::kPause, 2}));
}

TEST(NextMove, AQueuedOneWaitsForAllBeforeIt) {
  EXPECT_EQ(last_of(OnNewMessage::kQueue, {kG, kW, kW}), (Move{Kind::kWait, 1}));
  EXPECT_EQ(last_of(OnNewMessage::kQueue, {kP, kE, kW}), (Move{Kind::kWait, 0}));
  EXPECT_EQ(next_move(OnNewMessage::kQueue, std::array{kE, kW, kG}, 1), (Move{Kind::kWait, 2}));
  EXPECT_EQ(next_move(OnNewMessage::kQueue, std::array{kE, kW, kP}, 1), (Move{Kind::kStart, 1}));
}

TEST(NextMove, WhatIsHeldOrEndedMakesRoomAndDoesNotStart) {
  EXPECT_EQ(last_of(OnNewMessage::kCancel, {kG, kH}), (Move{Kind::kCancel, 0}));
  EXPECT_EQ(last_of(OnNewMessage::kPause, {kG, kH}), (Move{Kind::kPause, 0}));
  for (const OnNewMessage policy : kPolicies) {
    EXPECT_EQ(last_of(policy, {kE, kH}), (Move{Kind::kWait, 1})) << "for itself";
    EXPECT_EQ(last_of(policy, {kE, kE}), (Move{Kind::kGiveUp, 1}));
  }
}

// What must be true of a move, whoever is there.
void expect_lawful(OnNewMessage policy, const std::vector<Standing>& session, std::size_t me, const Move& move) {
  ASSERT_LT(move.whom, session.size());
  const Standing whom = session[move.whom];
  bool another_goes_on = false;
  bool one_before_lives = false;
  for (std::size_t i = 0; i < session.size(); ++i) {
    another_goes_on |= i != me && session[i] == kG;
    one_before_lives |= i < me && session[i] != kE;
  }
  switch (move.kind) {
    case Kind::kStart:
      ASSERT_EQ(session[me], kW);
      ASSERT_FALSE(another_goes_on);
      ASSERT_FALSE(one_before_lives && policy != OnNewMessage::kPause);
      return;
    case Kind::kPause: ASSERT_TRUE(policy == OnNewMessage::kPause && whom == kG && move.whom != me); return;
    case Kind::kCancel: ASSERT_TRUE(policy == OnNewMessage::kCancel && whom != kE && move.whom < me); return;
    case Kind::kWait: ASSERT_TRUE(whom != kE && (move.whom != me || whom == kH)); return;
    case Kind::kGiveUp: ASSERT_EQ(session[me], kE); return;
  }
}

// The `number`th of all sessions of `n`.
std::vector<Standing> session_of(std::size_t n, std::size_t number) {
  std::vector<Standing> session;
  for (; session.size() < n; number /= 5) session.push_back(static_cast<Standing>(number % 5));
  return session;
}

TEST(NextMove, KeepsTheRuleInEverySessionOfUpToFive) {
  std::array<int, 5> n_of_kind{};
  std::size_t n_sessions = 5;
  for (std::size_t n = 1; n <= 5; ++n, n_sessions *= 5) {
    for (std::size_t i = 0; i < n_sessions * n; ++i) {
      const std::vector<Standing> session = session_of(n, i / n);
      const std::size_t me = i % n;
      if (session[me] == kG || session[me] == kP) continue;  // it has its place
      for (const OnNewMessage policy : kPolicies) {
        const Move move = next_move(policy, session, me);
        ++n_of_kind[static_cast<std::size_t>(move.kind)];
        ASSERT_NO_FATAL_FAILURE(expect_lawful(policy, session, me, move));
      }
    }
  }
  for (const int count : n_of_kind) EXPECT_GT(count, 100);
}

}  // namespace
}  // namespace fermata::api
