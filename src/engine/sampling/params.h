#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"

namespace fermata {

struct LogitBias {
  TokenId token{};
  float bias = 0;  // added to the logit; -inf forbids the token
};

// How the next token is chosen from its logits row. Names and defaults are llama.cpp's, so that a user finds what they
// know; what cannot work is refused by validate(). Every field takes part in the result, so every field is state.
struct SamplingParams {
  std::uint64_t seed = 0;  // also a branch's key: random.h

  float temperature = 0.8f;  // less than 1e-5: always the most likely token (the smallest id among equals)
  float dynatemp_range = 0;
  float dynatemp_exponent = 1;
  std::int32_t top_k = 40;  // 0 or -1: off
  float top_p = 0.95f;      // 1: off
  float min_p = 0.05f;      // 0: off
  float typical_p = 1;      // 1: off
  float top_n_sigma = -1;   // < 0: off
  std::int32_t min_keep = 1;

  float xtc_probability = 0;  // 0: off
  float xtc_threshold = 0.1f;

  std::int32_t repeat_last_n = 64;  // -1: everything so far, 0: off
  float repeat_penalty = 1;         // 1: off
  float frequency_penalty = 0;
  float presence_penalty = 0;

  float dry_multiplier = 0;  // 0: off
  float dry_base = 1.75f;
  std::int32_t dry_allowed_length = 2;
  std::int32_t dry_penalty_last_n = -1;
  std::vector<std::string> dry_sequence_breakers = {"\n", ":", "\"", "*"};

  std::int32_t mirostat = 0;  // 0: off, 1, 2: its versions; replaces the truncating samplers and XTC
  float mirostat_tau = 5;
  float mirostat_eta = 0.1f;

  float adaptive_target = -1;  // < 0: off; else the probability that chosen tokens should have, 0..1
  float adaptive_decay = 0.9f;

  std::vector<LogitBias> logit_bias = {};
  bool ignore_eos = false;  // end-of-generation tokens are never chosen

  std::string grammar = {};      // GBNF; empty: none
  std::string json_schema = {};  // JSON text; turned into a grammar; not together with `grammar`
};

}  // namespace fermata
