#include "base/worker_team.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

namespace fermata {
namespace {

WorkerTeam::Options options(int n_threads, std::int64_t spin_ns = 2'000) {
  return {.n_threads = n_threads, .wait = {.spin_min_ns = 0, .spin_max_ns = spin_ns}};
}

TEST(WorkerTeam, EveryMemberRunsOnceAndTheJoinWaitsForAll) {
  for (const int n_threads : {1, 2, 3, 5}) {
    WorkerTeam team(options(n_threads));
    for (int round = 0; round < 200; ++round) {
      const int n_wanted = 1 + round % 7;
      std::array<std::atomic<int>, 8> seen{};
      std::atomic<int> n_seen{0};
      team.run(n_wanted, [&](int ith, int n) {
        EXPECT_EQ(n, std::min(n_wanted, n_threads));
        EXPECT_EQ(WorkerTeam::member(), ith);
        EXPECT_EQ(WorkerTeam::n_members(), n);
        seen[ith].fetch_add(1);
        n_seen.fetch_add(1);
      });
      const int n_expected = std::min(n_wanted, n_threads);
      EXPECT_EQ(n_seen.load(), n_expected);
      for (int i = 0; i < 8; ++i) EXPECT_EQ(seen[i].load(), i < n_expected ? 1 : 0);
    }
  }
}

// After a barrier each member sees what all wrote before it, however long it had to wait.
TEST(WorkerTeam, NobodyPassesABarrierBeforeAllHaveCome) {
  for (const std::int64_t spin_ns : {std::int64_t{0}, std::int64_t{1'000}, std::int64_t{100'000}}) {
    WorkerTeam team(options(4, spin_ns));
    std::array<int, 4> written{};
    std::atomic<int> n_wrong{0};
    team.run(4, [&](int ith, int n) {
      for (int round = 1; round <= 500; ++round) {
        written[ith] = round;
        WorkerTeam::barrier();
        for (int i = 0; i < n; ++i) n_wrong += written[i] != round;
        WorkerTeam::barrier();
      }
    });
    EXPECT_EQ(n_wrong.load(), 0);
    EXPECT_EQ(team.counters().barriers, 1000U);
  }
}

TEST(WorkerTeam, EachTaskRunsExactlyOnce) {
  WorkerTeam team(options(3));
  for (const int n_tasks : {0, 1, 2, 3, 100}) {
    std::vector<std::atomic<int>> runs(n_tasks);
    team.for_each_task(8, n_tasks, [&](int task, int) { runs[task].fetch_add(1); });
    for (const auto& n : runs) EXPECT_EQ(n.load(), 1);
  }
}

TEST(WorkerTeam, RegionsWithFewerMembersLeaveTheOthersUsable) {
  WorkerTeam team(options(4));
  for (int round = 0; round < 300; ++round) {
    std::atomic<int> n_ran{0};
    team.run(round % 2 == 0 ? 2 : 4, [&](int, int) {
      n_ran.fetch_add(1);
      WorkerTeam::barrier();
    });
    EXPECT_EQ(n_ran.load(), round % 2 == 0 ? 2 : 4);
  }
}

TEST(WorkerTeam, ARegionInsideARegionRunsAlone) {
  WorkerTeam team(options(2));
  std::atomic<int> n_inner{0};
  team.run(2, [&](int ith, int) {
    team.run(2, [&](int inner_ith, int n) {
      EXPECT_EQ(inner_ith, 0);
      EXPECT_EQ(n, 1);
      WorkerTeam::barrier();  // of one: returns
      n_inner.fetch_add(1);
    });
    EXPECT_EQ(WorkerTeam::member(), ith);
    WorkerTeam::barrier();
  });
  EXPECT_EQ(n_inner.load(), 2);
}

TEST(WorkerTeam, ABusyTeamLetsOtherCallersRunAlone) {
  WorkerTeam team(options(2));
  std::atomic<bool> inside{false};
  std::atomic<bool> leave{false};
  std::thread holder([&] {
    team.run(2, [&](int, int) {
      inside.store(true);
      inside.notify_all();
      leave.wait(false);
    });
  });
  inside.wait(false);
  int n_members = 0;
  team.run(2, [&](int, int n) { n_members = n; });
  EXPECT_EQ(n_members, 1);
  leave.store(true);
  leave.notify_all();
  holder.join();
  team.run(2, [&](int ith, int n) {
    if (ith == 0) n_members = n;
  });
  EXPECT_EQ(n_members, 2);
}

TEST(WorkerTeam, CallersOfManyThreadsShareOneTeam) {
  WorkerTeam team(options(3));
  std::vector<std::thread> callers;
  std::array<long, 4> sums{};
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&team, &sums, caller] {
      for (int round = 0; round < 200; ++round) {
        std::atomic<long> sum{0};
        team.for_each_task(3, 10, [&](int task, int) { sum += task; });
        sums[caller] += sum.load();
      }
    });
  }
  for (auto& caller : callers) caller.join();
  for (const long sum : sums) EXPECT_EQ(sum, 200 * 45);
}

TEST(WorkerTeam, TheTeamOfTheProcessCanBeConfigured) {
  WorkerTeam::configure(options(2));
  EXPECT_EQ(WorkerTeam::process().n_threads(), 2);
  WorkerTeam::configure(options(3));
  EXPECT_EQ(WorkerTeam::process().n_threads(), 3);
}

}  // namespace
}  // namespace fermata
