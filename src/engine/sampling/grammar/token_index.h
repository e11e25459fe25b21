#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/vocabulary.h"

namespace fermata {

// The vocabulary in byte order, so that a grammar can be walked over all tokens reading shared beginnings once.
// Immutable; views into the vocabulary, which must outlive it. Tokens that end the generation and tokens without bytes
// are not in the order.
class TokenIndex {
 public:
  explicit TokenIndex(const Vocabulary& vocabulary);

  struct Entry {
    TokenId token{};
    std::uint32_t n_shared = 0;  // leading bytes in common with the entry before
    std::string_view bytes;
  };
  const std::vector<Entry>& sorted() const { return sorted_; }
  std::size_t n_tokens() const { return bytes_.size(); }
  std::size_t longest() const { return longest_; }
  std::string_view bytes(TokenId token) const { return bytes_[static_cast<std::size_t>(raw(token))]; }
  bool ends_generation(TokenId token) const { return ends_[static_cast<std::size_t>(raw(token))]; }
  const std::vector<TokenId>& ends() const { return end_tokens_; }

 private:
  std::vector<Entry> sorted_;
  std::vector<std::string_view> bytes_;
  std::vector<bool> ends_;
  std::vector<TokenId> end_tokens_;
  std::size_t longest_ = 0;
};

}  // namespace fermata
