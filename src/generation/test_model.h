#pragma once

// For tests: a vocabulary of given pieces, and a sampler whose every choice depends on all it ever accepted.

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/sampling/sampler.h"
#include "engine/vocabulary.h"

namespace fermata::test {

inline std::uint64_t mix(std::uint64_t state, std::uint64_t value) {
  state = (state ^ value) * 0x9E3779B97F4A7C15u;
  return state ^ (state >> 29);
}

// Token i is pieces[i]; then come a control token (with a text that must never be seen) and the end of generation.
class PieceVocabulary final : public Vocabulary {
 public:
  explicit PieceVocabulary(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {}
  std::int32_t n_tokens() const override { return static_cast<std::int32_t>(pieces_.size()) + 2; }
  std::string_view bytes(TokenId token) const override {
    const auto i = static_cast<std::size_t>(raw(token));
    return i < pieces_.size() ? std::string_view(pieces_[i]) : std::string_view("<special>");
  }
  bool ends_generation(TokenId token) const override { return token == end(); }
  bool is_control(TokenId token) const override { return token == control(); }
  std::vector<TokenId> tokenize(std::string_view, Markers) const override { return {}; }
  std::vector<TokenId> prompt_prefix() const override { return {}; }

  TokenId control() const { return TokenId{n_tokens() - 2}; }
  TokenId end() const { return TokenId{n_tokens() - 1}; }
  TokenId find(std::string_view piece) const {
    for (std::size_t i = 0; i < pieces_.size(); ++i)
      if (pieces_[i] == piece) return TokenId{static_cast<std::int32_t>(i)};
    return end();
  }

 private:
  std::vector<std::string> pieces_;
};

// temperature 0: the largest logit. Else one of the two largest, by a hash of seed, position, all accepted tokens and
// the carry. params.grammar: the text of numbers of tokens that it does not allow to be generated, as one byte each.
class HashSampler final : public Sampler {
 public:
  explicit HashSampler(const SamplingParams& params)
      : seed_(params.seed), greedy_(params.temperature == 0), forbidden_(params.grammar) {}

  Result<Choice> sample(std::span<const float> logits, Position position) const override {
    std::size_t best = logits.size();
    std::size_t second = logits.size();
    for (std::size_t i = 0; i < logits.size(); ++i) {
      if (best == logits.size() || logits[i] > logits[best]) {
        second = best;
        best = i;
      } else if (second == logits.size() || logits[i] > logits[second]) {
        second = i;
      }
    }
    if (logits[best] < -1e30f) return Error{Code::kGrammar, "the grammar leaves no token", {}};
    const std::uint64_t chance = mix(mix(mix(seed_, static_cast<std::uint64_t>(position)), history_), bits(carry_));
    const std::size_t chosen = greedy_ || chance % 3 != 0 ? best : second;
    Choice choice;
    choice.token = TokenId{static_cast<std::int32_t>(chosen)};
    choice.logprob = -logits[chosen];
    choice.entropy = logits[best] + logits[second];
    choice.margin = logits[best] - logits[second];
    choice.carry = {carry_.first * 0.5f + logits[chosen], carry_.second + 1};
    return choice;
  }

  Result<void> accept(TokenId token, TokenRole role, const SamplerCarry& carry) override {
    if (role == TokenRole::kGenerated && forbidden_.find(static_cast<char>(raw(token))) != std::string::npos)
      return Error{Code::kGrammar, "the grammar does not allow this token", {}};
    history_ = mix(mix(history_, static_cast<std::uint64_t>(raw(token))), role == TokenRole::kPrompt ? 1 : 2);
    if (role == TokenRole::kGenerated) carry_ = carry;
    return {};
  }

  std::unique_ptr<Sampler> clone() const override { return std::make_unique<HashSampler>(*this); }

 private:
  static std::uint64_t bits(const SamplerCarry& carry) {
    std::uint32_t first = 0;
    std::uint32_t second = 0;
    std::memcpy(&first, &carry.first, sizeof first);
    std::memcpy(&second, &carry.second, sizeof second);
    return (std::uint64_t{first} << 32) | second;
  }

  std::uint64_t seed_;
  bool greedy_;
  std::string forbidden_;
  std::uint64_t history_ = 1;
  SamplerCarry carry_;
};

class HashSamplerFactory final : public SamplerFactory {
 public:
  Result<std::unique_ptr<Sampler>> make(const SamplingParams& params) const override {
    if (params.grammar == "bad") return Error{Code::kGrammar, "grammar is malformed", "line 1"};
    return std::unique_ptr<Sampler>(std::make_unique<HashSampler>(params));
  }
};

}  // namespace fermata::test
