#include "runtime/roster.h"

#include <gtest/gtest.h>

#include "base/limits.h"
#include "engine/fake/fake_engine.h"

namespace fermata {
namespace {

class RosterTest : public ::testing::Test {
 protected:
  Live& add(std::uint64_t id, std::size_t ring_size) {
    Request request;
    request.prompt = {TokenId{65}};
    request.n_tokens_max = 4;
    auto valid = validate(request, engine_.info(), engine_.vocabulary(), engine_.samplers());
    auto made = Generation::make(GenerationId{id}, *std::move(valid), engine_.vocabulary(), {});
    rings_.push_back(std::make_shared<EventRing>(ring_size));
    return roster_.add(Live(std::make_unique<Generation>(*std::move(made)), rings_.back()));
  }

  FakeEngine engine_;
  Roster roster_;
  std::vector<std::shared_ptr<EventRing>> rings_;
};

TEST_F(RosterTest, KeepsTheOrderOfArrival) {
  for (const std::uint64_t id : {1, 2, 3}) add(id, 4);
  std::vector<std::uint64_t> seen;
  roster_.for_each([&](Live& live) { seen.push_back(raw(live.generation->id())); });
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(roster_.size(), 3u);
  EXPECT_EQ(roster_.find(GenerationId{9}), nullptr);
}

TEST_F(RosterTest, AFinishedOneIsForgottenWhenItHasSaidAll) {
  Live& live = add(1, 1);
  (void)live.generation->apply(Trigger::kAdmit, WaitReason::kNone, {});
  live.generation->finish(EndReason::kCancelled, {});
  roster_.deliver();
  EXPECT_NE(roster_.find(GenerationId{1}), nullptr) << "its end does not fit into the ring";
  EXPECT_FALSE(rings_[0]->closed_and_empty());
  EXPECT_TRUE(rings_[0]->try_pop().has_value());
  roster_.deliver();
  EXPECT_EQ(roster_.find(GenerationId{1}), nullptr);
  const auto ended = roster_.ended(GenerationId{1});
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->end_reason, EndReason::kCancelled);
  const auto last = rings_[0]->try_pop();
  ASSERT_TRUE(last.has_value());
  EXPECT_TRUE(std::holds_alternative<FinishEvent>(last->content));
  EXPECT_EQ(last->number, 1u);
  EXPECT_TRUE(rings_[0]->closed_and_empty());
}

TEST_F(RosterTest, ASlowReaderIsSeenAndRecovers) {
  Live& live = add(1, limits::kEventsPerTokenMax);
  EXPECT_FALSE(live.reader_is_slow());
  (void)live.generation->apply(Trigger::kAdmit, WaitReason::kNone, {});
  roster_.deliver();
  EXPECT_TRUE(live.reader_is_slow());
  (void)rings_[0]->try_pop();
  EXPECT_FALSE(live.reader_is_slow());
}

TEST_F(RosterTest, OldEndsAreForgottenInOrder) {
  for (std::uint64_t id = 1; id <= limits::kEndedKept + 2; ++id) {
    add(id, 4).generation->finish(EndReason::kCancelled, {});
    roster_.deliver();
    rings_.clear();
  }
  EXPECT_FALSE(roster_.ended(GenerationId{2}).has_value());
  EXPECT_TRUE(roster_.ended(GenerationId{3}).has_value());
  EXPECT_TRUE(roster_.ended(GenerationId{limits::kEndedKept + 2}).has_value());
  EXPECT_EQ(roster_.size(), 0u);
}

}  // namespace
}  // namespace fermata
