#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/sampling/history.h"
#include "engine/vocabulary.h"

namespace fermata {

// Where a repetition may not reach across: sequences of tokens that contain or begin a breaker string. By first token:
// the tokens that must follow it (none: the token alone breaks).
struct DryBreakers {
  std::unordered_map<TokenId, std::vector<std::vector<TokenId>>> tails;
  bool is_single(TokenId token) const;
};

// Looks at every token of the vocabulary: some milliseconds.
DryBreakers make_dry_breakers(const Vocabulary& vocabulary, std::span<const std::string> strings);

struct DryParams {
  float multiplier = 0;
  float base = 1.75f;
  std::int32_t allowed_length = 2;
  std::size_t last_n = 0;
  bool active() const { return multiplier != 0 && last_n > 0; }
};

// "Don't repeat yourself" (p-e-w, text-generation-webui 2024; law and limits of llama.cpp's sampler): a token that
// would make the end of the text repeat `length` tokens of the window before it loses
// multiplier * base ^ (length - allowed_length). O(window).
void apply_dry(const DryParams& params, const DryBreakers& breakers, const History& history, std::span<float> row);

}  // namespace fermata
