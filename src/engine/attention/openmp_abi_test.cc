// Compiled with -fopenmp and linked without libgomp: what the compiler makes of these pragmas must work on our team.
#include "engine/attention/openmp_abi.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/worker_team.h"

extern "C" {
int omp_get_thread_num();
int omp_get_num_threads();
}

namespace fermata::attention {
namespace {

constexpr int kThreads = 4;

class OpenMp : public testing::Test {
 protected:
  static void SetUpTestSuite() { WorkerTeam::configure({.n_threads = kThreads}); }
};

TEST_F(OpenMp, ARegionRunsOnOurTeamAndASingleOnce) {
  const auto regions = openmp_regions();
  std::array<int, kThreads> ran{};
  int n_members = 0;
  int n_singles = 0;
#pragma omp parallel num_threads(kThreads)
  {
    ran[omp_get_thread_num()] += 1;
    for (int round = 0; round < 100; ++round) {
#pragma omp single
      {
        n_members = omp_get_num_threads();
        ++n_singles;
      }
    }
  }
  EXPECT_EQ(openmp_regions(), regions + 1);
  EXPECT_EQ(ran, (std::array<int, kThreads>{1, 1, 1, 1}));
  EXPECT_EQ(n_members, kThreads);
  EXPECT_EQ(n_singles, 100);
}

TEST_F(OpenMp, NobodyPassesABarrierBeforeAllHaveCome) {
  std::array<int, kThreads> written{};
  std::array<int, kThreads> n_wrong{};
#pragma omp parallel num_threads(kThreads)
  {
    const int self = omp_get_thread_num();
    for (int round = 1; round <= 200; ++round) {
      written[self] = round;
#pragma omp barrier
      for (const int other : written) n_wrong[self] += other != round;
#pragma omp barrier
    }
  }
  EXPECT_EQ(n_wrong, (std::array<int, kThreads>{}));
}

TEST_F(OpenMp, ADynamicLoopDealsOutEachTurnOnce) {
  constexpr int kLoops = 20;  // one after the other in one region
  for (const int n : {0, 1, 5, 100}) {
    std::vector<int> up(n, 0);
    std::vector<int> down(n, 0);
#pragma omp parallel num_threads(kThreads)
    for (int loop = 0; loop < kLoops; ++loop) {
#pragma omp for schedule(dynamic, 3)
      for (int i = 0; i < n; ++i) ++up[i];
#pragma omp for schedule(dynamic)
      for (int i = n - 1; i >= 0; i -= 2) ++down[i];
    }
    for (int i = 0; i < n; ++i) {
      EXPECT_EQ(up[i], kLoops) << i << " of " << n;
      EXPECT_EQ(down[i], (n - 1 - i) % 2 == 0 ? kLoops : 0) << i << " of " << n;
    }
  }
}

// Too wide for an instruction, so the compiler asks for the lock.
TEST_F(OpenMp, AnAtomicOfAnySizeIsOne) {
  long double sum = 0;
#pragma omp parallel num_threads(kThreads)
  for (int i = 0; i < 1000; ++i) {
#pragma omp atomic
    sum += 1;
  }
  EXPECT_EQ(sum, 1000 * kThreads);
}

TEST_F(OpenMp, ARegionWithinARegionRunsAlone) {
  int n_outer = 0;
  std::array<int, kThreads> n_inner{};
#pragma omp parallel num_threads(kThreads)
  {
    const int self = omp_get_thread_num();
#pragma omp parallel num_threads(kThreads)
    n_inner[self] += omp_get_num_threads();
#pragma omp single
    n_outer = omp_get_num_threads();
  }
  EXPECT_EQ(n_inner, (std::array<int, kThreads>{1, 1, 1, 1}));
  EXPECT_EQ(n_outer, kThreads);
}

}  // namespace
}  // namespace fermata::attention
