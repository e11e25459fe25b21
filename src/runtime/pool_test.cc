#include "runtime/pool.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "engine/fake/fake_engine.h"

namespace fermata {
namespace {

std::vector<TokenId> tokens(std::initializer_list<std::int32_t> ids) {
  std::vector<TokenId> list;
  for (const std::int32_t id : ids) list.push_back(TokenId{id});
  return list;
}

class PoolTest : public ::testing::Test {
 protected:
  static FakeOptions options() {
    FakeOptions options;
    options.n_cells = 32;
    options.n_seqs = 4;
    return options;
  }

  // Computes what is missing of these tokens.
  void compute(SeqId seq, std::span<const TokenId> all) {
    std::vector<Row> rows;
    for (Position p = engine_.ledger().length(seq); p < static_cast<Position>(all.size()); ++p)
      rows.push_back({all[static_cast<std::size_t>(p)], p, seq, false});
    ASSERT_TRUE(engine_.step(rows, nullptr).has_value());
  }
  Pool::Admission admit(std::span<const TokenId> all) {
    const auto admission = pool_.admit(all, {++now_});
    EXPECT_TRUE(admission.has_value());
    return *admission;
  }

  FakeEngine engine_{options()};
  Pool pool_{engine_};
  std::int64_t now_ = 0;
};

TEST_F(PoolTest, WhatIsRetiredIsFoundAgain) {
  const auto first = tokens({1, 2, 3, 4});
  const auto a = admit(first);
  EXPECT_EQ(a.n_cached, 0);
  compute(a.seq, first);
  pool_.retire(a.seq, first, {++now_});
  const auto longer = tokens({1, 2, 3, 9, 9});
  const auto b = admit(longer);
  EXPECT_EQ(b.n_cached, 3);
  EXPECT_EQ(engine_.tokens(b.seq), tokens({1, 2, 3}));
  EXPECT_EQ(engine_.ledger().n_used(), 4u) << "shared, not copied";
  pool_.audit();
}

TEST_F(PoolTest, WhatOneGroupComputedIsNotFoundByAnother) {
  const auto all = tokens({1, 2, 3, 4});
  const auto a = *pool_.admit(all, {++now_}, 1);
  compute(a.seq, all);
  pool_.publish(a.seq, all);
  EXPECT_EQ(pool_.known(all, {++now_}, 2).n_tokens, 0);
  const auto b = *pool_.admit(all, {++now_}, 2);
  EXPECT_EQ(b.n_cached, 0);
  EXPECT_EQ(pool_.known(all, {++now_}, 1).n_tokens, 3);
  pool_.retire(a.seq, all, {++now_});
  EXPECT_EQ(pool_.known(all, {++now_}, 2).n_tokens, 0);
  EXPECT_EQ(pool_.known(all, {++now_}, 1).n_tokens, 3);
  pool_.evict(a.seq);
  EXPECT_EQ(pool_.known(all, {++now_}, 1).n_tokens, 0);
  pool_.audit();
}

TEST_F(PoolTest, TheLastTokenIsAlwaysComputedAgain) {
  const auto all = tokens({1, 2, 3});
  const auto a = admit(all);
  compute(a.seq, all);
  pool_.retire(a.seq, all, {++now_});
  EXPECT_EQ(pool_.known(all, {++now_}).n_tokens, 2);
  EXPECT_EQ(admit(all).n_cached, 2);
}

TEST_F(PoolTest, TheLastTokenTooIsFoundByWhoHoldsItsRow) {
  const auto all = tokens({1, 2, 3});
  const auto a = admit(all);
  compute(a.seq, all);
  pool_.publish(a.seq, all);
  EXPECT_EQ(pool_.known(all, {++now_}, 0, true).n_tokens, 3);
  const auto b = pool_.admit(all, {++now_}, 0, true);
  ASSERT_TRUE(b.has_value());
  EXPECT_EQ(b->n_cached, 3);
  EXPECT_EQ(engine_.ledger().n_used(), 3u) << "shared, not copied";
}

TEST_F(PoolTest, OnlyWhatWasComputedIsKept) {
  const auto all = tokens({1, 2, 3, 4, 5});
  const auto a = admit(all);
  compute(a.seq, std::span(all).first(2));
  pool_.retire(a.seq, std::span(all).first(2), {++now_});
  EXPECT_EQ(pool_.known(all, {++now_}).n_tokens, 2);
}

TEST_F(PoolTest, WhatNobodyComputedLeavesNothing) {
  const auto all = tokens({1, 2});
  const auto a = admit(all);
  pool_.retire(a.seq, {}, {++now_});
  EXPECT_TRUE(pool_.cached(true).empty());
  EXPECT_EQ(engine_.ledger().n_used(), 0u);
  pool_.audit();
}

TEST_F(PoolTest, WhatIsThereAlreadyIsNotKeptTwice) {
  const auto all = tokens({1, 2, 3});
  for (int i = 0; i < 3; ++i) {
    const auto a = admit(all);
    compute(a.seq, all);
    pool_.retire(a.seq, all, {++now_});
  }
  EXPECT_EQ(pool_.cached(true).size(), 1u);
  EXPECT_EQ(engine_.ledger().n_used(), 3u);
  pool_.audit();
}

TEST_F(PoolTest, AShorterOneThatALongerHoldsIsNotKept) {
  const auto longer = tokens({1, 2, 3, 4});
  const auto a = admit(longer);
  compute(a.seq, longer);
  pool_.publish(a.seq, longer);
  const auto b = admit(tokens({1, 2, 3}));
  EXPECT_EQ(b.n_cached, 2);
  pool_.retire(b.seq, tokens({1, 2}), {++now_});
  EXPECT_TRUE(pool_.cached(true).empty());
}

TEST_F(PoolTest, AnEvictedSourceLeavesTheSharedCellsToTheirOtherOwner) {
  const auto first = tokens({1, 2, 3, 4});
  const auto a = admit(first);
  compute(a.seq, first);
  pool_.retire(a.seq, first, {++now_});
  const auto b = admit(tokens({1, 2, 3, 9}));
  pool_.evict(a.seq);
  EXPECT_EQ(pool_.n_evictions(), 1u);
  EXPECT_EQ(engine_.tokens(b.seq), tokens({1, 2, 3}));
  EXPECT_EQ(engine_.ledger().n_used(), 3u);
  pool_.audit();
}

TEST_F(PoolTest, FindingAPrefixIsAUse) {
  for (const std::int32_t first : {1, 2}) {
    const auto all = tokens({first, 7, 7});
    const auto a = admit(all);
    compute(a.seq, all);
    pool_.retire(a.seq, all, {++now_});
  }
  const SeqId oldest = pool_.cached(false).front().seq;
  const auto known = pool_.known(tokens({1, 7, 7, 7}), {++now_});
  EXPECT_EQ(known.cached_source, oldest);
  EXPECT_NE(pool_.cached(false).front().seq, oldest);
}

TEST_F(PoolTest, UsesAtTheSameTimeKeepTheirOrder) {
  for (const std::int32_t first : {1, 2}) {
    const auto all = tokens({first, 7, 7});
    const auto a = admit(all);
    compute(a.seq, all);
    pool_.retire(a.seq, all, {5});
  }
  const auto known = pool_.known(tokens({1, 7, 7, 7}), {5});
  EXPECT_EQ(pool_.cached(false).back().seq, known.cached_source) << "the source of who waits is evicted last";
}

TEST_F(PoolTest, CellsThatCachedOnesShareAreCountedWithTheLastOfThem) {
  const auto first = tokens({1, 2, 3, 4});
  const auto a = admit(first);
  compute(a.seq, first);
  pool_.publish(a.seq, first);
  const auto second = tokens({1, 2, 8, 8, 8});
  const auto b = admit(second);
  compute(b.seq, second);
  pool_.retire(a.seq, first, {++now_});
  pool_.retire(b.seq, second, {++now_});
  const auto exactly = pool_.cached(true);
  ASSERT_EQ(exactly.size(), 2u);
  EXPECT_EQ(exactly[0].n_exclusive, 2u);
  EXPECT_EQ(exactly[1].n_exclusive, 5u);
  const auto roughly = pool_.cached(false);
  EXPECT_EQ(roughly[0].n_exclusive + roughly[1].n_exclusive, 5u);
}

TEST_F(PoolTest, IdsRunOutAndComeBack) {
  std::vector<SeqId> held;
  for (std::int32_t i = 0; i < 3; ++i) held.push_back(admit(tokens({i, 1})).seq);
  const auto none = pool_.admit(tokens({9}), {++now_});
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, Code::kNoSequences);
  pool_.release(held.back());
  EXPECT_TRUE(pool_.admit(tokens({9}), {++now_}).has_value());
  pool_.audit();
}

}  // namespace
}  // namespace fermata
