#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/vocabulary.h"

struct llama_model;
struct llama_vocab;

namespace fermata {

// The vocabulary of a loaded model, with the bytes of every token worked out once. Lives as long as the model.
class LlamaVocabulary final : public Vocabulary {
 public:
  // kModel if the model has no tokenizer.
  static Result<std::unique_ptr<LlamaVocabulary>> make(const llama_model* model);

  std::int32_t n_tokens() const override { return static_cast<std::int32_t>(ends_.size()) - 1; }
  std::string_view bytes(TokenId token) const override;
  bool ends_generation(TokenId token) const override { return traits(token).ends_generation; }
  bool is_control(TokenId token) const override { return traits(token).control; }
  std::vector<TokenId> tokenize(std::string_view text, Markers markers) const override;
  std::vector<SpecialText> special_texts() const override;
  std::vector<TokenId> prompt_prefix() const override { return prefix_; }

 private:
  struct Traits {
    bool control = false;
    bool ends_generation = false;
  };
  explicit LlamaVocabulary(const llama_vocab* vocab) : vocab_(vocab) {}
  const Traits& traits(TokenId token) const;

  const llama_vocab* vocab_;
  std::string text_;               // the bytes of all tokens, one after the other
  std::vector<std::size_t> ends_;  // [n_tokens + 1]; token t is text_[ends_[t], ends_[t + 1])
  std::vector<Traits> traits_;     // [n_tokens]
  std::vector<TokenId> prefix_;
};

}  // namespace fermata
