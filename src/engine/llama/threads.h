#pragma once

#include <cstdint>
#include <string>

namespace fermata {

// How many threads a step gets, and why, in one sentence for people.
struct ThreadChoice {
  std::int32_t n_threads = 1;
  std::string why;
};

// What the machine allows this process, for choose_threads() and its tests.
struct CpuBudget {
  std::int32_t n_allowed = 1;  // logical CPUs of the affinity mask
  std::int32_t n_cores = 1;    // physical cores among them
  double quota = 0;            // CPUs' worth of time the control groups grant; 0: no limit
};

CpuBudget read_cpu_budget();

// A physical core each (two threads of one core share its vector units), never more than the quota pays for.
ThreadChoice choose_threads(const CpuBudget& budget, std::int32_t asked);

}  // namespace fermata
