#include "engine/llama/vocabulary.h"

#include <limits>

#include "base/check.h"
#include "llama.h"

namespace fermata {

Result<std::unique_ptr<LlamaVocabulary>> LlamaVocabulary::make(const llama_model* model) {
  const llama_vocab* vocab = llama_model_get_vocab(model);
  const std::int32_t n = llama_vocab_n_tokens(vocab);
  if (llama_vocab_type(vocab) == LLAMA_VOCAB_TYPE_NONE || n <= 0)
    return Error{Code::kModel, "the model has no tokenizer; it cannot take or make text", {}, false};
  std::unique_ptr<LlamaVocabulary> made(new LlamaVocabulary(vocab));
  made->ends_.reserve(static_cast<std::size_t>(n) + 1);
  made->ends_.push_back(0);
  std::string piece(64, '\0');
  for (llama_token token = 0; token < n; ++token) {
    const auto attributes = static_cast<unsigned>(llama_vocab_get_attr(vocab, token));
    Traits traits;
    traits.control = (attributes & LLAMA_TOKEN_ATTR_CONTROL) != 0 || llama_vocab_is_control(vocab, token);
    traits.ends_generation = llama_vocab_is_eog(vocab, token);
    made->traits_.push_back(traits);
    // A token that ends the generation is no text, even where the model forgot to mark it as control.
    if (!traits.control && !traits.ends_generation) {
      std::int32_t size =
          llama_token_to_piece(vocab, token, piece.data(), static_cast<std::int32_t>(piece.size()), 0, false);
      if (size < 0) {
        piece.resize(static_cast<std::size_t>(-size));
        size = llama_token_to_piece(vocab, token, piece.data(), static_cast<std::int32_t>(piece.size()), 0, false);
      }
      if (size > 0) made->text_.append(piece, 0, static_cast<std::size_t>(size));
    }
    made->ends_.push_back(made->text_.size());
  }
  if (llama_vocab_get_add_bos(vocab) && llama_vocab_bos(vocab) != LLAMA_TOKEN_NULL)
    made->prefix_.push_back(TokenId{llama_vocab_bos(vocab)});
  return made;
}

const LlamaVocabulary::Traits& LlamaVocabulary::traits(TokenId token) const {
  FERMATA_CHECK(contains(token));
  return traits_[static_cast<std::size_t>(raw(token))];
}

std::string_view LlamaVocabulary::bytes(TokenId token) const {
  FERMATA_CHECK(contains(token));
  const auto index = static_cast<std::size_t>(raw(token));
  return std::string_view(text_).substr(ends_[index], ends_[index + 1] - ends_[index]);
}

std::vector<TokenId> LlamaVocabulary::tokenize(std::string_view text, Markers markers) const {
  FERMATA_CHECK_LE(text.size(), static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()));
  const auto size = static_cast<std::int32_t>(text.size());
  const bool parse = markers == Markers::kParse;
  std::vector<llama_token> raw_tokens(text.size() + 16);
  std::int32_t n = llama_tokenize(vocab_, text.data(), size, raw_tokens.data(),
                                  static_cast<std::int32_t>(raw_tokens.size()), false, parse);
  if (n < 0) {  // the room that it wants
    raw_tokens.resize(static_cast<std::size_t>(-n));
    n = llama_tokenize(vocab_, text.data(), size, raw_tokens.data(), static_cast<std::int32_t>(raw_tokens.size()),
                       false, parse);
  }
  FERMATA_CHECK_LE(0, n);
  std::vector<TokenId> tokens;
  tokens.reserve(static_cast<std::size_t>(n));
  for (std::int32_t i = 0; i < n; ++i) tokens.push_back(TokenId{raw_tokens[static_cast<std::size_t>(i)]});
  return tokens;
}

// As llama-vocab's tokenizer_st_partition has it: tokens that a user defined are read in any text.
std::vector<SpecialText> LlamaVocabulary::special_texts() const {
  std::vector<SpecialText> texts;
  for (llama_token token = 0; token < n_tokens(); ++token) {
    const auto attributes = static_cast<unsigned>(llama_vocab_get_attr(vocab_, token));
    if ((attributes & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN)) == 0) continue;
    const char* text = llama_vocab_get_text(vocab_, token);
    if (text == nullptr || *text == '\0') continue;
    texts.push_back({text, (attributes & LLAMA_TOKEN_ATTR_LSTRIP) != 0, (attributes & LLAMA_TOKEN_ATTR_RSTRIP) != 0});
  }
  return texts;
}

}  // namespace fermata
