#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "engine/fake/fake_engine.h"

namespace fermata::sim {

// Bugs that the simulation must find, or it finds nothing.
enum class Plant {
  kNone,
  // --- in the engine
  kCellsOutOfOrder,
  kLogitsRowLost,
  kSharedCellFreedEarly,
  kAbortSpoilsCells,
  kNeighboursStepAborted,  // an interrupt ends the step whoever else is in it
  kAbortedTwice,           // the step after an aborted one is aborted as well
  kPageOfAnother,          // a page goes out that is like the first one of these positions
  // --- in the sampler
  kRandomOffByOne,
  kGrammarFromRoot,  // its position is forgotten at each token
  kCarryLost,        // mirostat begins again at each token
  kWindowForgetsPrompt,
  // --- on the way to the reader
  kEventLost,
  kHeldTextReleased,  // at a pause
  // --- on the way from the asker
  kResumeOvertaken,  // a resume is handled before the pause that was called before it
};
inline constexpr int kPlants = static_cast<int>(Plant::kResumeOvertaken) + 1;

std::string_view to_string(Plant plant);

// The plant as the fake engine knows it.
PlantedBug engine_bug(Plant plant);

// What the loop gets in place of `true_ones`; the same if the plant is elsewhere.
std::shared_ptr<const SamplerFactory> plant_in(std::shared_ptr<const SamplerFactory> true_ones, Plant plant);

}  // namespace fermata::sim
