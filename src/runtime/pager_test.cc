#include "runtime/pager.h"

#include <gtest/gtest.h>

#include "engine/fake/fake_engine.h"

namespace fermata {
namespace {

Page page(Position begin, Position end) { return {begin, end, std::vector<std::byte>(10)}; }

TEST(PageStackTest, HoldsTheEndOfAGenerationFromTheFront) {
  PageStack stack;
  EXPECT_TRUE(stack.empty());
  EXPECT_EQ(stack.n_tokens(), 0);
  stack.push(page(64, 70));
  stack.push(page(0, 64));
  EXPECT_EQ(stack.begin(), 0);
  EXPECT_EQ(stack.n_tokens(), 70);
  EXPECT_EQ(stack.bytes(), 20u);
  stack.pop();
  EXPECT_EQ(stack.begin(), 64);
  EXPECT_EQ(stack.top().end, 70);
  EXPECT_EQ(stack.bytes(), 10u);
  stack.clear();
  EXPECT_TRUE(stack.empty());
  EXPECT_EQ(stack.bytes(), 0u);
}

TEST(PageStackTest, APageWhoseTokensChangedGoesWhole) {
  PageStack stack;
  stack.push(page(128, 150));
  stack.push(page(64, 128));
  stack.push(page(0, 64));
  stack.drop_behind(150);
  EXPECT_EQ(stack.n_tokens(), 150);
  stack.drop_behind(149);
  EXPECT_EQ(stack.end(), 128);
  EXPECT_EQ(stack.bytes(), 20u);
  stack.drop_behind(127);
  EXPECT_EQ(stack.end(), 64);
  stack.drop_behind(0);
  EXPECT_TRUE(stack.empty());
  EXPECT_EQ(stack.bytes(), 0u);
}

TEST(PageStackDeathTest, AGapIsABug) {
  PageStack stack;
  stack.push(page(64, 70));
  EXPECT_DEATH(stack.push(page(0, 63)), "check failed");
  EXPECT_DEATH(stack.push(page(64, 64)), "check failed");
}

class PagerTest : public ::testing::Test {
 protected:
  static constexpr SeqId kSeq{0};
  static constexpr SeqId kOther{1};

  void compute(SeqId seq, Position n) {
    std::vector<Row> rows;
    for (Position i = 0; i < n; ++i) rows.push_back({TokenId{i % 7}, i, seq, false});
    ASSERT_TRUE(engine_.step(rows, nullptr).has_value());
  }
  void all_out(SeqId seq, PageStack& stack) {
    while (engine_.ledger().length(seq) > 0) {
      ASSERT_TRUE(pager_.out(seq, engine_.ledger().length(seq), stack));
      engine_.trim(seq, stack.begin());
    }
  }

  static FakeOptions small() {
    FakeOptions options;
    options.n_cells = 24;
    options.n_seqs = 3;
    return options;
  }

  FakeEngine engine_{small()};
  Pager pager_{engine_, 8};
};

TEST_F(PagerTest, WhatWentOutComesBackAsItWas) {
  compute(kSeq, 19);
  const std::vector<TokenId> tokens = engine_.tokens(kSeq);
  PageStack stack;
  all_out(kSeq, stack);
  EXPECT_EQ(pager_.n_out(), 3u);  // 16-19, 8-16, 0-8
  EXPECT_EQ(stack.n_tokens(), 19);
  EXPECT_EQ(engine_.ledger().n_free(), 24u);
  while (!stack.empty()) ASSERT_TRUE(pager_.in(kOther, stack));
  EXPECT_EQ(pager_.n_in(), 3u);
  EXPECT_EQ(engine_.tokens(kOther), tokens);
}

TEST_F(PagerTest, WithoutRoomNothingChanges) {
  compute(kSeq, 12);
  PageStack stack;
  all_out(kSeq, stack);
  compute(kOther, 20);
  EXPECT_EQ(pager_.in(kSeq, stack).error().code, Code::kNoCells);
  EXPECT_EQ(stack.n_tokens(), 12);
  EXPECT_EQ(engine_.ledger().length(kSeq), 0);
}

TEST_F(PagerTest, APartOutsideIsBroughtBackToWhereItWas) {
  compute(kSeq, 19);
  const std::vector<TokenId> tokens = engine_.tokens(kSeq);
  PageStack stack;
  ASSERT_TRUE(pager_.out(kSeq, 19, stack));
  engine_.trim(kSeq, stack.begin());
  EXPECT_EQ(stack.begin(), 16);
  ASSERT_TRUE(pager_.in(kSeq, stack));
  EXPECT_TRUE(stack.empty());
  EXPECT_EQ(engine_.tokens(kSeq), tokens);
}

}  // namespace
}  // namespace fermata
