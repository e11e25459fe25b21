#pragma once

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "engine/vocabulary.h"

namespace fermata {

// For tests: all 256 bytes as tokens, words over a few letters and characters cut in two, a control and two end tokens.
class ToyVocabulary final : public Vocabulary {
 public:
  static constexpr TokenId kControl{256}, kEnd{257}, kOtherEnd{258};

  explicit ToyVocabulary(std::size_t n_words = 253, unsigned seed = 1) {
    for (int byte = 0; byte < 256; ++byte) texts_.emplace_back(1, static_cast<char>(byte));
    texts_.resize(259);
    std::mt19937 random(seed);
    const std::string_view parts[] = {"a", "b",  "c", "ab", "1",  "2",    "\"",   "{",        "}",    ":", ",",
                                      " ", "\n", "x", "é",  "漢", "\xC3", "\xA9", "\xE6\xBC", "true", "[", "]"};
    while (texts_.size() < 259 + n_words) {
      std::string word;
      for (auto n = 1 + random() % 5; n > 0; --n) word += parts[random() % std::size(parts)];
      texts_.push_back(word);
    }
  }

  std::int32_t n_tokens() const override { return static_cast<std::int32_t>(texts_.size()); }
  std::string_view bytes(TokenId token) const override { return texts_[static_cast<std::size_t>(raw(token))]; }
  bool ends_generation(TokenId token) const override { return token == kEnd || token == kOtherEnd; }
  bool is_control(TokenId token) const override { return token == kControl; }
  std::vector<TokenId> tokenize(std::string_view text, Markers markers) const override {
    if (markers == Markers::kParse && text == "<control>") return {kControl};
    std::vector<TokenId> tokens;
    for (const char c : text) tokens.push_back(TokenId{static_cast<std::uint8_t>(c)});
    return tokens;
  }
  std::vector<TokenId> prompt_prefix() const override { return {}; }

 private:
  std::vector<std::string> texts_;
};

}  // namespace fermata
