#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/vocabulary.h"

namespace fermata {

// A small vocabulary with everything that makes real ones hard: all single bytes (so that a character may be split over
// tokens), pieces that are parts of characters, whole Chinese characters and emoji, words with and without a leading
// space, control tokens, an end of generation.
//
//   id   0 .. 255   the byte of that value
//        256 ..     pieces of several bytes
//        last ones  control tokens: begin, user, answer, end
class FakeVocabulary final : public Vocabulary {
 public:
  FakeVocabulary();

  std::int32_t n_tokens() const override { return static_cast<std::int32_t>(bytes_.size()); }
  std::string_view bytes(TokenId token) const override;
  bool ends_generation(TokenId token) const override { return token == end(); }
  bool is_control(TokenId token) const override { return raw(token) >= n_plain_; }
  // The longest piece that fits comes first. Control tokens are written "<|begin|>", "<|user|>", "<|answer|>",
  // "<|end|>".
  std::vector<TokenId> tokenize(std::string_view text, Markers markers) const override;
  std::vector<SpecialText> special_texts() const override;
  std::vector<TokenId> prompt_prefix() const override { return {begin()}; }

  TokenId byte(unsigned char value) const { return TokenId{value}; }
  TokenId begin() const { return TokenId{n_plain_}; }
  TokenId user() const { return TokenId{n_plain_ + 1}; }
  TokenId answer() const { return TokenId{n_plain_ + 2}; }  // ends a prompt; what follows is the completion
  TokenId end() const { return TokenId{n_plain_ + 3}; }     // ends the generation

 private:
  std::vector<std::string> bytes_;  // [n_tokens]
  std::map<std::string, TokenId, std::less<>> plain_;
  std::map<std::string, TokenId, std::less<>> markers_;
  std::size_t n_piece_bytes_max_ = 1;
  std::int32_t n_plain_ = 0;
};

}  // namespace fermata
