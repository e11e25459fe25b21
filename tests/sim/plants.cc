#include "plants.h"

#include <utility>

#include "base/check.h"

namespace fermata::sim {
namespace {

// Accepts rightly, but samples with what a wrong fold would have.
class WrongSampler final : public Sampler {
 public:
  WrongSampler(std::unique_ptr<Sampler> right, std::unique_ptr<Sampler> wrong, Plant plant)
      : right_(std::move(right)), wrong_(std::move(wrong)), plant_(plant) {}

  Result<Choice> sample(std::span<const float> logits, Position position) const override {
    return wrong_->sample(logits, plant_ == Plant::kRandomOffByOne ? position + 1 : position);
  }

  Result<void> accept(TokenId token, TokenRole role, const SamplerCarry& carry) override {
    const Result<void> accepted = right_->accept(token, role, carry);
    const bool is_prompt = role == TokenRole::kPrompt;
    if (!accepted || (plant_ == Plant::kWindowForgetsPrompt && is_prompt)) return accepted;
    // For a token of the prompt the grammar does not move.
    const TokenRole wrong_role = plant_ == Plant::kGrammarFromRoot ? TokenRole::kPrompt : role;
    (void)wrong_->accept(token, wrong_role, plant_ == Plant::kCarryLost ? SamplerCarry{} : carry);
    return accepted;
  }

  std::unique_ptr<Sampler> clone() const override {
    return std::make_unique<WrongSampler>(right_->clone(), wrong_->clone(), plant_);
  }

 private:
  std::unique_ptr<Sampler> right_;
  std::unique_ptr<Sampler> wrong_;
  Plant plant_;
};

class WrongSamplerFactory final : public SamplerFactory {
 public:
  WrongSamplerFactory(std::shared_ptr<const SamplerFactory> right, Plant plant)
      : right_(std::move(right)), plant_(plant) {}

  Result<std::unique_ptr<Sampler>> make(const SamplingParams& params) const override {
    auto right = right_->make(params);
    if (!right || (plant_ == Plant::kGrammarFromRoot && params.grammar.empty())) return right;
    return std::unique_ptr<Sampler>(std::make_unique<WrongSampler>(*std::move(right), *right_->make(params), plant_));
  }

 private:
  std::shared_ptr<const SamplerFactory> right_;
  Plant plant_;
};

}  // namespace

std::string_view to_string(Plant plant) {
  switch (plant) {
    case Plant::kNone: return "none";
    case Plant::kCellsOutOfOrder: return "cells summed out of order";
    case Plant::kLogitsRowLost: return "lost logits row";
    case Plant::kSharedCellFreedEarly: return "shared cell freed early";
    case Plant::kAbortSpoilsCells: return "an aborted step spoils a cell";
    case Plant::kNeighboursStepAborted: return "a neighbour's step is aborted";
    case Plant::kAbortedTwice: return "the step after an aborted one is aborted";
    case Plant::kPageOfAnother: return "a page of another generation comes back";
    case Plant::kRandomOffByOne: return "RNG off by one";
    case Plant::kGrammarFromRoot: return "grammar from its root";
    case Plant::kCarryLost: return "mirostat's mu is lost";
    case Plant::kWindowForgetsPrompt: return "the penalty window forgets the prompt";
    case Plant::kEventLost: return "an event is lost";
    case Plant::kHeldTextReleased: return "held text is released at a pause";
    case Plant::kResumeOvertaken: return "a resume overtakes the pause before it";
  }
  return "";
}

PlantedBug engine_bug(Plant plant) {
  switch (plant) {
    case Plant::kCellsOutOfOrder: return PlantedBug::kCellsOutOfOrder;
    case Plant::kLogitsRowLost: return PlantedBug::kLogitsRowLost;
    case Plant::kSharedCellFreedEarly: return PlantedBug::kSharedCellFreedEarly;
    case Plant::kAbortSpoilsCells: return PlantedBug::kAbortSpoilsCells;
    default: return PlantedBug::kNone;
  }
}

std::shared_ptr<const SamplerFactory> plant_in(std::shared_ptr<const SamplerFactory> true_ones, Plant plant) {
  const bool is_here = plant == Plant::kRandomOffByOne || plant == Plant::kGrammarFromRoot ||
                       plant == Plant::kCarryLost || plant == Plant::kWindowForgetsPrompt;
  if (!is_here) return true_ones;
  return std::make_shared<WrongSamplerFactory>(std::move(true_ones), plant);
}

}  // namespace fermata::sim
