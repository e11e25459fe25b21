#include "scheduler/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace fermata {
namespace {

constexpr Instant kNow{1'000'000'000'000};

Instant before(std::int64_t ms) { return {kNow.ns - milliseconds(ms).ns}; }

struct Scene {
  std::vector<GenerationView> generations;
  std::vector<CachedView> cached;
  PoolView pool{.n_cells = 1000, .n_free = 1000, .n_seqs_free = 200, .cached = {}};
  PlanLimits limits = {.n_rows_ahead = 1};

  GenerationView& running(std::uint64_t id, Position wanted, Position computed) {
    GenerationView view;
    view.id = GenerationId{id};
    view.running = true;
    view.wanted = wanted;
    view.computed = computed;
    view.arrival = before(1000 - static_cast<std::int64_t>(id));  // a smaller id came earlier
    return generations.emplace_back(view);
  }
  GenerationView& queued(std::uint64_t id, Position wanted) {
    GenerationView& view = running(id, wanted, 0);
    view.running = false;
    view.queued = true;
    view.n_room_min = wanted + 1;
    return view;
  }
  void cache(int seq, std::uint32_t n_exclusive) { cached.push_back({SeqId{seq}, n_exclusive, {}}); }
  Plan plan() {
    pool.cached = cached;
    return make_plan(generations, pool, limits, kNow);
  }
};

std::vector<GenerationId> ids(std::initializer_list<std::uint64_t> values) {
  std::vector<GenerationId> result;
  for (const std::uint64_t value : values) result.push_back(GenerationId{value});
  return result;
}

TEST(PlanDecode, EveryRunningGenerationWithOneTokenToComputeGetsARow) {
  Scene scene;
  scene.running(1, 10, 9);
  scene.running(2, 10, 10);  // nothing to compute
  scene.running(3, 7, 6);
  const Plan plan = scene.plan();
  EXPECT_EQ(plan.decode, ids({1, 3}));
  EXPECT_TRUE(plan.prefill.empty());
}

TEST(PlanDecode, ThoseThatWaitedLongestComeFirstWhenTheyAreTooMany) {
  Scene scene;
  scene.limits.n_decode_rows = 2;
  scene.running(1, 10, 9).last_planned = before(1);
  scene.running(2, 10, 9).last_planned = before(3);
  scene.running(3, 10, 9).last_planned = before(2);
  EXPECT_EQ(scene.plan().decode, ids({2, 3}));
}

TEST(PlanPrefill, ChunkIsLargeAloneAndSmallBesideAStream) {
  Scene scene;
  scene.running(1, 500, 0);
  EXPECT_EQ(scene.plan().prefill.front().n_rows, scene.limits.n_prefill_rows);
  scene.running(2, 10, 9);
  EXPECT_EQ(scene.plan().prefill.front().n_rows, scene.limits.n_prefill_rows_shared);
  EXPECT_EQ(scene.plan().decode, ids({2}));
}

TEST(PlanPrefill, ChunkBesideStreamsIsLargeAsSoonAsAnotherPromptWaits) {
  Scene scene;
  scene.limits.n_prefill_rows = 100;
  scene.limits.n_prefill_rows_shared = 30;
  for (const std::uint64_t id : {1, 2, 3}) scene.running(id, 10, 9);
  scene.running(11, 500, 0);
  EXPECT_EQ(scene.plan().prefill.front().n_rows, 30);
  scene.running(12, 500, 0);
  EXPECT_EQ(scene.plan().prefill.front().n_rows, 100);
}

TEST(PlanPrefill, ChunkEndsWithTheWantedTokens) {
  Scene scene;
  scene.running(1, 50, 45);
  EXPECT_EQ(scene.plan().prefill.front().n_rows, 5);
}

TEST(PlanPrefill, OneAfterTheOtherOfThoseThatCameTogether) {
  Scene scene;
  for (const std::uint64_t id : {1, 2, 3}) scene.running(id, 500, 0);
  std::vector<std::uint64_t> order;
  for (int turn = 0; turn < 12; ++turn) {
    const Plan plan = scene.plan();
    GenerationView& served = scene.generations[raw(plan.prefill.front().id) - 1];
    served.computed += plan.prefill.front().n_rows;
    served.last_planned = {kNow.ns - 1000 + turn};
    if (served.computed == served.wanted) {
      order.push_back(raw(served.id));
      served.running = false;
    }
  }
  EXPECT_EQ(order, (std::vector<std::uint64_t>{1, 2, 3})) << "and each with no chunk more than it needs";
}

TEST(PlanPrefill, AShortOneAndTheFirstByTurns) {
  Scene scene;
  scene.running(1, 900, 300).last_planned = before(10);
  scene.running(2, 900, 300).last_planned = before(15);
  scene.running(3, 100, 0).last_planned = before(20);
  EXPECT_EQ(scene.plan().prefill.front().id, GenerationId{3}) << "the shortest, as the first had the last chunk";
  scene.generations[2].last_planned = before(5);
  EXPECT_EQ(scene.plan().prefill.front().id, GenerationId{1}) << "the first, as the shortest had the last chunk";
}

TEST(PlanPrefill, ShortOnesGoTogetherAsLongAsAllOfEachFits) {
  Scene scene;
  scene.limits.n_prefill_rows_shared = 64;
  scene.running(1, 40, 20);
  scene.running(2, 30, 0);
  scene.running(3, 25, 10);
  scene.running(4, 20, 8);
  scene.running(5, 400, 0);
  scene.running(6, 10, 9);
  const Plan plan = scene.plan();
  EXPECT_EQ(plan.prefill,
            (std::vector<PrefillChunk>{{GenerationId{1}, 20}, {GenerationId{4}, 12}, {GenerationId{3}, 15}}))
      << "whose turn it is, then the shortest; of 30 more not all fits, and a part of it would gain nothing";
  EXPECT_EQ(plan.decode, ids({6}));
}

TEST(PlanPrefill, NoneGoesAlongWithAPart) {
  Scene scene;
  scene.limits.n_prefill_rows = 32;
  scene.limits.n_prefill_rows_shared = 64;
  scene.running(1, 100, 0);
  scene.running(2, 120, 0);
  EXPECT_EQ(scene.plan().prefill, (std::vector<PrefillChunk>{{GenerationId{1}, 32}}));
}

TEST(PlanPrefill, NoneGoesAlongOfAnotherPriorityOrWithoutCells) {
  Scene scene;
  scene.running(1, 20, 0).priority = 1;
  scene.running(2, 15, 0);
  EXPECT_EQ(scene.plan().prefill, (std::vector<PrefillChunk>{{GenerationId{1}, 20}}));
  scene.generations.back().priority = 1;
  scene.pool.n_free = 30;
  EXPECT_EQ(scene.plan().prefill, (std::vector<PrefillChunk>{{GenerationId{1}, 20}}));
  scene.pool.n_free = 35;
  EXPECT_EQ(scene.plan().prefill.size(), 2u);
}

TEST(PlanPrefill, LargerPriorityUnlessASmallerOneHadNothingForLong) {
  Scene scene;
  scene.running(1, 500, 0).last_planned = before(10);
  scene.running(2, 500, 0).last_planned = before(5);
  scene.generations.back().priority = 1;
  EXPECT_EQ(scene.plan().prefill.front().id, GenerationId{2});
  scene.generations.front().last_planned = scene.generations.front().arrival = before(6000);
  EXPECT_EQ(scene.plan().prefill.front().id, GenerationId{1});
  scene.generations.front().priority = 1;
  scene.generations.back().computed = 450;
  EXPECT_EQ(scene.plan().prefill.front().id, GenerationId{1}) << "the first of its priority, and it waited longer";
}

TEST(PlanEvict, LeastRecentlyUsedFirstAndNoMoreThanNeeded) {
  Scene scene;
  scene.running(1, 100, 50);
  scene.pool.n_free = 10;
  scene.cache(7, 25);
  scene.cache(8, 0);
  scene.cache(9, 15);
  scene.cache(5, 30);
  const Plan plan = scene.plan();
  EXPECT_EQ(plan.evict, (std::vector{SeqId{7}, SeqId{8}, SeqId{9}}));
  EXPECT_EQ(plan.prefill.front().n_rows, 50);
}

TEST(PlanPreempt, TheLeastSeniorGivesWayAndTheOthersGoOn) {
  Scene scene;
  scene.running(1, 10, 9);
  scene.running(2, 10, 9).priority = 1;
  scene.running(3, 10, 9);
  scene.queued(4, 5);
  scene.pool.n_free = 2;
  const Plan plan = scene.plan();
  EXPECT_EQ(plan.preempt, ids({3}));
  EXPECT_EQ(plan.decode, ids({2, 1}));
  EXPECT_TRUE(plan.admit.empty());
  EXPECT_FALSE(plan.out_of_cells);
}

TEST(PlanPreempt, TheLastOneIsNamedInsteadOfGivingWay) {
  Scene scene;
  scene.running(1, 10, 9);
  scene.pool.n_free = 0;
  const Plan plan = scene.plan();
  EXPECT_TRUE(plan.preempt.empty());
  EXPECT_EQ(plan.out_of_cells, GenerationId{1});
  EXPECT_TRUE(plan.idle());
}

TEST(PlanPreempt, PrefillWithoutCellsMakesTheLeastSeniorGiveWay) {
  Scene scene;
  scene.running(1, 100, 50);
  scene.running(2, 100, 40);
  scene.pool.n_free = 0;
  EXPECT_EQ(scene.plan().preempt, ids({2}));
}

TEST(PlanAdmit, ByPriorityThenArrivalWhileThereIsRoom) {
  Scene scene;
  scene.running(1, 300, 100);  // claims 201 cells: what it wants and one more
  scene.queued(2, 300);
  scene.queued(3, 300);
  scene.queued(4, 100).priority = 5;
  scene.pool.n_free = 900;
  const Plan plan = scene.plan();
  EXPECT_EQ(plan.admit, ids({4, 2}));  // 900 - 201 - 101 - 301 = 297 < 301
}

TEST(PlanAdmit, LeavesRowsAheadToEveryoneUnlessNobodyRuns) {
  Scene scene;
  scene.limits.n_rows_ahead = 8;
  scene.pool.n_free = 101;
  scene.queued(1, 100);
  EXPECT_EQ(scene.plan().admit, ids({1}));
  scene.running(2, 10, 10);
  EXPECT_TRUE(scene.plan().admit.empty());
  scene.pool.n_free = 100 + 8 + 8;
  EXPECT_EQ(scene.plan().admit, ids({1}));
}

TEST(PlanAdmit, StopsAtSequenceIdsAndEvictsForThem) {
  Scene scene;
  scene.pool.n_seqs_free = 1;
  scene.cache(7, 0);
  scene.queued(1, 10);
  scene.queued(2, 10);
  scene.queued(3, 10);
  const Plan plan = scene.plan();
  EXPECT_EQ(plan.admit, ids({1, 2}));
  EXPECT_EQ(plan.evict, std::vector{SeqId{7}});
}

TEST(PlanAdmit, KeepsItsSource) {
  Scene scene;
  scene.pool.n_free = 15;
  scene.pool.n_seqs_free = 0;
  scene.cache(6, 10);
  scene.cache(7, 80);
  scene.queued(1, 100).source = SeqId{7};
  scene.generations.back().n_room_min = 21;  // 80 of 100 are in the pool
  const Plan plan = scene.plan();
  EXPECT_EQ(plan.admit, ids({1}));
  EXPECT_EQ(plan.evict, std::vector{SeqId{6}});

  scene.generations.back().n_room_min = 26;  // beside the source there are 25; without it 105
  scene.generations.back().wanted = 105;
  EXPECT_TRUE(scene.plan().admit.empty());
  scene.generations.back().wanted = 104;
  EXPECT_EQ(scene.plan().admit, ids({1}));
}

TEST(PlanAdmit, SmallOnesPassABigOneUntilItIsOverdue) {
  Scene scene;
  scene.pool.n_free = 100;
  scene.queued(1, 500);
  scene.queued(2, 50);
  EXPECT_EQ(scene.plan().admit, ids({2}));
  scene.generations[0].arrival = before(6000);
  scene.generations[1].priority = 9;
  EXPECT_TRUE(scene.plan().admit.empty());
  scene.pool.n_pinned = 600;  // it waits for what is paused: nobody else need wait for that
  EXPECT_EQ(scene.plan().admit, ids({2}));
}

TEST(Plan, DoesNotDependOnTheOrderOfTheView) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 300; ++round) {
    Scene scene;
    const auto draw = [&](int n) { return static_cast<int>(random() % static_cast<std::uint64_t>(n)); };
    for (int i = 1; i <= 30; ++i) {
      const Position wanted = 1 + draw(100);
      GenerationView& view = draw(2) == 0 ? scene.queued(static_cast<std::uint64_t>(i), wanted)
                                          : scene.running(static_cast<std::uint64_t>(i), wanted, draw(wanted + 1));
      view.priority = draw(3);
      view.arrival = before(draw(7000));
      view.last_planned = before(draw(7000));
    }
    for (int s = 0; s < draw(6); ++s) scene.cache(s, static_cast<std::uint32_t>(draw(100)));
    scene.pool.n_free = static_cast<std::uint32_t>(draw(300));
    scene.pool.n_seqs_free = draw(5);
    const Plan one = scene.plan();
    std::shuffle(scene.generations.begin(), scene.generations.end(), random);
    const Plan two = scene.plan();
    EXPECT_EQ(one.evict, two.evict);
    EXPECT_EQ(one.preempt, two.preempt);
    EXPECT_EQ(one.admit, two.admit);
    EXPECT_EQ(one.decode, two.decode);
    EXPECT_EQ(one.prefill, two.prefill);
  }
}

GenerationView& restoring(Scene& scene, std::uint64_t id, Position n_outside, Position n_page_rows) {
  GenerationView& view = scene.running(id, 200, 200);
  view.n_outside = n_outside;
  view.n_page_rows = n_page_rows;
  return view;
}

TEST(PlanPageIn, OnePageATurnOfWhoWaitedLongest) {
  Scene scene;
  restoring(scene, 1, 120, 64).last_planned = before(10);
  restoring(scene, 2, 120, 64).last_planned = before(20);
  scene.running(3, 10, 9);
  scene.running(4, 50, 10);
  const Plan plan = scene.plan();
  EXPECT_EQ(plan.page_in, GenerationId{2});
  EXPECT_EQ(plan.decode, ids({3}));
  EXPECT_FALSE(plan.prefill.empty()) << "a page holds up neither rows nor chunks";
  EXPECT_FALSE(plan.idle());
}

TEST(PlanPageIn, ComesInWholeOrNotAtAll) {
  Scene scene;
  restoring(scene, 1, 64, 64);
  scene.running(2, 10, 9);
  scene.pool.n_free = 60;
  const Plan plan = scene.plan();
  EXPECT_FALSE(plan.page_in);
  EXPECT_EQ(plan.preempt, ids({2})) << "the least senior gives way";
}

TEST(PlanPageIn, NobodyIsAdmittedIntoTheCellsOfPagesToCome) {
  Scene scene;
  restoring(scene, 1, 120, 64);
  scene.queued(2, 50);
  scene.pool.n_free = 150;
  EXPECT_TRUE(scene.plan().admit.empty()) << "64 come in now, 56 later, and 51 are wanted";
  scene.pool.n_free = 180;
  EXPECT_EQ(scene.plan().admit, ids({2}));
}

TEST(PlanParking, IsWantedWhenAnOverdueOneIsKeptOutAndOthersStandStill) {
  Scene scene;
  scene.queued(1, 600).arrival = before(10'000);
  scene.pool.n_free = 500;
  EXPECT_FALSE(scene.plan().wants_parking) << "nothing is paused";
  scene.pool.n_pinned = 400;
  EXPECT_TRUE(scene.plan().wants_parking);
  scene.pool.n_free = 0;
  EXPECT_TRUE(scene.plan().wants_parking);
  scene.generations[0].arrival = before(10);
  EXPECT_FALSE(scene.plan().wants_parking) << "not overdue";
}

}  // namespace
}  // namespace fermata
