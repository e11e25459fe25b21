#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace fermata {

enum class Markers {
  kPlain,  // text that looks like a special token stays text
  kParse,  // special tokens are recognised: only for text that a template made
};

// A text that kParse reads as one special token.
struct SpecialText {
  std::string text;
  bool strips_left = false;  // white space before it is not read
  bool strips_right = false;
};

// What the ids mean. Immutable, thread-safe.
class Vocabulary {
 public:
  virtual ~Vocabulary() = default;
  virtual std::int32_t n_tokens() const = 0;
  // The bytes this token adds to the text; may be part of a UTF-8 character. Empty for control tokens.
  // Precondition: 0 <= token < n_tokens(). The view lives as long as the vocabulary.
  virtual std::string_view bytes(TokenId token) const = 0;
  virtual bool ends_generation(TokenId token) const = 0;
  virtual bool is_control(TokenId token) const = 0;
  virtual std::vector<TokenId> tokenize(std::string_view text, Markers markers) const = 0;
  // All that kParse reads otherwise than kPlain.
  virtual std::vector<SpecialText> special_texts() const { return {}; }
  // What the model wants before the first token of any prompt (BOS), empty if nothing.
  virtual std::vector<TokenId> prompt_prefix() const = 0;

  bool contains(TokenId token) const { return raw(token) >= 0 && raw(token) < n_tokens(); }
};

}  // namespace fermata
