#include "engine/llama/threads.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace fermata {
namespace {

constexpr std::int32_t kThreadsMax = 512;

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// cpu.max of this process's control group and of every group above it: the smallest quota counts.
double read_quota_v2() {
  std::ifstream groups("/proc/self/cgroup");
  std::string line;
  std::string path;
  while (std::getline(groups, line))
    if (line.starts_with("0::")) path = line.substr(3);
  double least = 0;
  while (true) {
    std::istringstream words(first_line("/sys/fs/cgroup" + path + "/cpu.max"));
    double quota = 0;
    double period = 0;
    if (words >> quota >> period && period > 0 && (least == 0 || quota / period < least)) least = quota / period;
    const auto slash = path.rfind('/');
    if (slash == std::string::npos || path.size() <= 1) break;
    path.resize(slash);
  }
  return least;
}

double read_quota_v1() {
  std::istringstream quota_text(first_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"));
  std::istringstream period_text(first_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us"));
  double quota = 0;
  double period = 0;
  return quota_text >> quota && period_text >> period && quota > 0 && period > 0 ? quota / period : 0;
}

}  // namespace

CpuBudget read_cpu_budget() {
  CpuBudget budget;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) budget.n_allowed = std::max(1, CPU_COUNT(&allowed));
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    const std::string siblings =
        first_line("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list");
    cores.insert(siblings.empty() ? std::to_string(cpu) : siblings);
  }
  budget.n_cores = std::max(1, static_cast<std::int32_t>(cores.size()));
  budget.quota = read_quota_v2();
  if (budget.quota == 0) budget.quota = read_quota_v1();
  return budget;
}

ThreadChoice choose_threads(const CpuBudget& budget, std::int32_t asked) {
  if (asked > 0) {
    const std::int32_t n = std::min(asked, kThreadsMax);
    return {n, std::to_string(n) + " threads, as asked; this process may use " + std::to_string(budget.n_allowed) +
                   " logical CPUs"};
  }
  const std::int32_t cores = std::clamp(budget.n_cores, 1, std::min(budget.n_allowed, kThreadsMax));
  const auto paid = budget.quota > 0 ? std::max(1, static_cast<std::int32_t>(std::floor(budget.quota))) : cores;
  if (paid < cores)
    return {paid, std::to_string(paid) + " threads: the CPU quota of this control group pays for no more"};
  return {cores, std::to_string(cores) + " threads: one for each physical core that this process may use"};
}

}  // namespace fermata
