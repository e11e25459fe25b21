#pragma once

#include <memory>
#include <span>

#include "base/ids.h"
#include "base/result.h"
#include "engine/sampling/params.h"

namespace fermata {

// What a sampler knows that cannot be folded again from the tokens alone, because it came out of a logits row that is
// gone: mirostat's mu, adaptive-p's two sums. The journal keeps it in each row, so that a fold can hand it back. Empty
// ({}) with a token that no sampler chose: the sampler keeps what it has.
struct SamplerCarry {
  float first = 0;
  float second = 0;
  bool operator==(const SamplerCarry&) const = default;
};

// A token chosen from a logits row. Log-probability, entropy (nats) and margin (log-probability of the best minus the
// second best, >= 0) are those of the raw softmax at temperature 1, before any sampler had its say.
struct Choice {
  TokenId token{};
  float logprob = 0;
  float entropy = 0;
  float margin = 0;
  SamplerCarry carry;  // to be handed to accept() with this token
};

enum class TokenRole { kPrompt, kGenerated };

// Everything between a logits row and a token: biases, grammar, penalties, truncation, chance. Its state is a pure
// function of the tokens accepted so far (and their carries), so it can always be made again by a fold. Chance is a
// pure function of (key, position). Owner: the engine thread. Created by SamplerFactory.
class Sampler {
 public:
  virtual ~Sampler() = default;

  // Chooses the token that will stand at `position`. Changes no state: asked twice, it answers the same.
  // logits: [n_vocab]. kGrammar if the grammar leaves no token, kInvalidArgument if the biases leave none, kEngine for
  // a row with a NaN or without a finite maximum.
  virtual Result<Choice> sample(std::span<const float> logits, Position position) const = 0;

  // The fold. A prompt token moves the history windows; a generated one also moves the grammar and takes the carry.
  // kGrammar (state unchanged) if the grammar does not allow a generated token here; kInvalidArgument for a token out
  // of the vocabulary or a carry that is no number.
  virtual Result<void> accept(TokenId token, TokenRole role, const SamplerCarry& carry) = 0;

  virtual std::unique_ptr<Sampler> clone() const = 0;
};

// Thread-safe.
class SamplerFactory {
 public:
  virtual ~SamplerFactory() = default;
  // Refuses what cannot work (kInvalidArgument, kGrammar), naming the field.
  virtual Result<std::unique_ptr<Sampler>> make(const SamplingParams& params) const = 0;
};

}  // namespace fermata
