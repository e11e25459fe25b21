#include "scheduler/sequence_ids.h"

#include <gtest/gtest.h>

#include <set>

namespace fermata {
namespace {

TEST(SequenceIds, GivesOutAllButTheMovingOneOnceEach) {
  SequenceIds ids(limits::kSequencesMax);
  std::set<SeqId> given;
  while (const auto seq = ids.take()) EXPECT_TRUE(given.insert(*seq).second);
  EXPECT_EQ(given.size(), 255u);
  EXPECT_FALSE(given.contains(ids.moving()));
  EXPECT_EQ(ids.moving(), SeqId{255});
  EXPECT_EQ(ids.n_free(), 0);
}

TEST(SequenceIds, GivesTheSmallestFreeOneAgain) {
  SequenceIds ids(8);
  for (int i = 0; i < 6; ++i) ids.take();
  ids.give_back(SeqId{4});
  ids.give_back(SeqId{1});
  EXPECT_EQ(ids.n_free(), 3);
  EXPECT_FALSE(ids.is_taken(SeqId{1}));
  EXPECT_EQ(ids.take(), SeqId{1});
  EXPECT_EQ(ids.take(), SeqId{4});
  EXPECT_EQ(ids.take(), SeqId{6});
  EXPECT_EQ(ids.take(), std::nullopt);
}

TEST(SequenceIdsDeath, RefusesAnIdThatWasNotGivenOut) {
  SequenceIds ids(4);
  EXPECT_DEATH(ids.give_back(SeqId{0}), "check failed");
  EXPECT_DEATH(ids.give_back(ids.moving()), "check failed");
  EXPECT_DEATH(ids.give_back(SeqId{4}), "check failed");
  const SeqId seq = *ids.take();
  ids.give_back(seq);
  EXPECT_DEATH(ids.give_back(seq), "check failed");
}

}  // namespace
}  // namespace fermata
