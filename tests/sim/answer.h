#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "simulation.h"

namespace fermata::sim {

// An answer that is waited for, or was given: then no second one may come.
struct Simulation::Answer {
  GenerationId of = kNoGeneration;
  std::string_view call;
  std::uint64_t asked_at = 0;  // in halves of turns
  bool given = false;
  std::function<bool()> poll;  // true if there is one; it was checked
};

}  // namespace fermata::sim
