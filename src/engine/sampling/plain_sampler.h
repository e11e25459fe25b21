#pragma once

#include <cstdint>
#include <memory>

#include "engine/sampling/sampler.h"

namespace fermata {

// The sampler of engines without a model: small, but with every kind of state the real one has — windows over prompt
// and answer, a carry, a grammar with a position, keyed chance — so that a wrong fold shows. It knows logit_bias,
// ignore_eos, repeat_penalty and frequency_penalty over repeat_last_n, temperature, top_k, mirostat 2 and a toy
// grammar; other fields are ignored once they are valid.
//   grammar  = "cycle:" id *("," id)      the k-th generated token is the k-th id, round and round; EOG never fits
//            | "any-of:" set *(";" set)   the k-th generated token is of the k-th set; then only the EOG token fits
//   set      = id *("," id)
class PlainSamplerFactory : public SamplerFactory {
 public:
  PlainSamplerFactory(std::int32_t n_vocab, TokenId eog) : n_vocab_(n_vocab), eog_(eog) {}
  Result<std::unique_ptr<Sampler>> make(const SamplingParams& params) const override;

 private:
  std::int32_t n_vocab_;
  TokenId eog_;
};

}  // namespace fermata
