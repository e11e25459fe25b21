// sim_test [--seeds N] [--first S] [--plant P] [--seed X]: simulates N worlds from seed S on; or one, telling what
// happens in it, if wanted with the P-th planted bug.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "simulation.h"

namespace fermata::sim {
namespace {

constexpr std::uint64_t kSeedsDefault = 2000;
constexpr std::uint64_t kSeedsForCoverage = 500;  // fewer prove nothing about what is rare
constexpr std::uint64_t kSeedsPerPlant = 300;     // a planted bug is found in fewer

std::uint64_t seed_in_progress = 0;

void say_how_to_replay() {
  char line[64];
  const int n = std::snprintf(line, sizeof line, "replay: sim_test --seed %llu\n",
                              static_cast<unsigned long long>(seed_in_progress));
  (void)!write(STDERR_FILENO, line, static_cast<std::size_t>(n));
}

// A check of the product's that fails ends the process; the seed must be known all the same.
void on_abort(int) {
  say_how_to_replay();
  _exit(1);
}

// False if an invariant broke.
bool run_seed(const SimulationOptions& options, Coverage& coverage, double& settling) {
  seed_in_progress = options.seed;
  try {
    Simulation simulation(options, coverage);
    simulation.run();
    settling = std::max(settling, simulation.settling());
    return true;
  } catch (const Failure& failure) {
    std::fprintf(stderr, "seed %llu: %s\n", static_cast<unsigned long long>(options.seed), failure.what.c_str());
    return false;
  }
}

bool run_seeds(std::uint64_t first, std::uint64_t n_seeds) {
  Coverage coverage;
  double settling = 0;
  for (std::uint64_t seed = first; seed < first + n_seeds; ++seed) {
    if (run_seed({.seed = seed}, coverage, settling)) continue;
    say_how_to_replay();
    return false;
  }
  std::printf("%llu seeds hold; settling took at most %.0f %% of its bound\n%s",
              static_cast<unsigned long long>(n_seeds), 100 * settling, coverage.table().c_str());
  if (n_seeds < kSeedsForCoverage) return true;
  const std::vector<std::string> missing = coverage.missing(n_seeds);
  for (const std::string& line : missing) std::fprintf(stderr, "too rare: %s\n", line.c_str());
  return missing.empty();
}

// In a process of its own, since a bug may end it. The seed that finds the bug; nothing if none does.
std::optional<std::uint64_t> find_plant(Plant plant, std::uint64_t first) {
  for (std::uint64_t seed = first; seed < first + kSeedsPerPlant; ++seed) {
    const pid_t child = fork();
    if (child == 0) {
      if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(2);
      Coverage coverage;
      double settling = 0;
      _exit(run_seed({.seed = seed, .plant = plant}, coverage, settling) ? 0 : 1);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return std::nullopt;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return seed;
  }
  return std::nullopt;
}

bool find_all_plants(std::uint64_t first) {
  bool all = true;
  for (int i = 1; i < kPlants; ++i) {
    const auto plant = static_cast<Plant>(i);
    const auto seed = find_plant(plant, first);
    all = all && seed;
    std::printf("planted: %s: %s\n", std::string(to_string(plant)).c_str(),
                seed ? ("found by seed " + std::to_string(*seed)).c_str() : "NOT FOUND");
  }
  return all;
}

}  // namespace
}  // namespace fermata::sim

int main(int argc, char** argv) {
  using namespace fermata::sim;
  signal(SIGABRT, on_abort);
  const char* from_environment = std::getenv("FERMATA_SIM_SEEDS");
  std::uint64_t n_seeds = from_environment ? std::strtoull(from_environment, nullptr, 10) : kSeedsDefault;
  std::uint64_t first = 1;
  auto plant = Plant::kNone;
  for (int i = 1; i < argc; i += 2) {
    const std::uint64_t value = i + 1 < argc ? std::strtoull(argv[i + 1], nullptr, 10) : 0;
    if (std::strcmp(argv[i], "--seeds") == 0 && i + 1 < argc) {
      n_seeds = value;
    } else if (std::strcmp(argv[i], "--first") == 0 && i + 1 < argc) {
      first = value;
    } else if (std::strcmp(argv[i], "--plant") == 0 && value < kPlants) {
      plant = static_cast<Plant>(value);
    } else if (std::strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
      Coverage coverage;
      double settling = 0;
      const bool holds = run_seed({.seed = value, .plant = plant, .verbose = true}, coverage, settling);
      if (holds) std::printf("seed %llu holds\n", static_cast<unsigned long long>(value));
      return holds ? 0 : 1;
    } else {
      std::fprintf(stderr, "usage: sim_test [--seeds N] [--first S] [--plant P] [--seed X]\n");
      return 2;
    }
  }
  const bool holds = run_seeds(first, n_seeds);
  return holds && find_all_plants(first) ? 0 : 1;
}
