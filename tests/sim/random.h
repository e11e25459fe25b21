#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fermata::sim {

// Chance of the simulation: the same on every machine, so that a seed is a run.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // lo <= between <= hi.
  std::int32_t between(std::int32_t lo, std::int32_t hi) {
    return lo + static_cast<std::int32_t>(next() % static_cast<std::uint64_t>(hi - lo + 1));
  }
  bool chance(double p) { return static_cast<double>(next() >> 11) * 0x1p-53 < p; }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(next() % from.size())];
  }

 private:
  std::uint64_t state_;
};

// An invariant is broken: the run of this seed ends here.
struct Failure {
  std::string what;
};

}  // namespace fermata::sim

#define SIM_EXPECT(condition, message)                                                    \
  do {                                                                                    \
    if (!(condition)) [[unlikely]]                                                        \
      throw ::fermata::sim::Failure{std::string(#condition ": ") + std::string(message)}; \
  } while (false)
