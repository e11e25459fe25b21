#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "generation/state.h"

namespace fermata::sim {

// What happened in all runs together. A simulation in which a thing never happens says nothing about it.
class Coverage {
 public:
  void count(std::string_view what, std::uint64_t n = 1) { counts_[std::string(what)] += n; }
  void transition(State from, State to);
  void wait(State state, WaitReason reason);
  void end(EndReason reason);

  std::uint64_t of(std::string_view what) const;
  // What happened less often than it must in so many seeds, one line each.
  std::vector<std::string> missing(std::uint64_t n_seeds) const;
  std::string table() const;

 private:
  std::map<std::string, std::uint64_t, std::less<>> counts_;
};

}  // namespace fermata::sim
