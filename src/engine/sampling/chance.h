#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/sampling/candidates.h"
#include "engine/sampling/random.h"
#include "engine/sampling/sampler.h"

// Keyed ports of the llama.cpp samplers that own a generator or a hidden state. Given the same random number and order
// they choose what llama.cpp's do; the number comes from outside, the state comes as a carry and goes as a carry.
namespace fermata {

// Inverse CDF: the first candidate in canonical order at which the sum of the weights reaches u times the total.
TokenId choose_dist(Candidates& candidates, double u);

// XTC: with the given probability (u is the throw) drops all candidates that reach the threshold but the least of them.
void exclude_top_choices(Candidates& candidates, float probability, float threshold, std::size_t min_keep, float u);

struct Chosen {
  TokenId token{};
  SamplerCarry carry;
};

// Mirostat: first of the carry is mu, second is 1 to say that there is one.
struct MirostatParams {
  float tau = 5;  // target surprise, bits
  float eta = 0.1f;
  std::int32_t n_vocab = 0;
};
SamplerCarry mirostat_start(const MirostatParams& params);
Chosen choose_mirostat_v1(Candidates& candidates, const MirostatParams& params, const SamplerCarry& carry, double u);
Chosen choose_mirostat_v2(Candidates& candidates, const MirostatParams& params, const SamplerCarry& carry, double u);

// Adaptive-p: the carry holds sum(p_i decay^i) and sum(decay^i) of the tokens chosen so far.
struct AdaptiveParams {
  float target = 0.5f;
  float decay = 0.9f;
};
SamplerCarry adaptive_start(const AdaptiveParams& params);
Chosen choose_adaptive(Candidates& candidates, const AdaptiveParams& params, const SamplerCarry& carry, double u);

// A token that no sampler chose (forced, injected, edited in) comes with an empty carry, which changes nothing.
inline bool is_empty(const SamplerCarry& carry) { return carry.second == 0; }

}  // namespace fermata
