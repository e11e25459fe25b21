#pragma once

#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "engine/llama/engine.h"
#include "llama.h"

// For tests that need a model: FERMATA_TINY_MODEL names the file, else the shipped one is used.
namespace fermata::test {

inline std::string model_path() {
  const char* given = std::getenv("FERMATA_TINY_MODEL");
  return given != nullptr && given[0] != '\0' ? given : FERMATA_SHIPPED_MODEL;
}

// A plain loop over llama_decode in a context of its own: one sequence, one row at a time, none of our books. It keeps
// what it computed for the next question.
class LoneContext {
 public:
  explicit LoneContext(const LlamaEngine& engine, std::uint32_t n_cells = 1024) {
    llama_context_params params = llama_context_default_params();
    params.n_ctx = n_cells;
    params.n_batch = 1;
    params.n_ubatch = 1;
    params.n_seq_max = 1;
    params.n_threads = params.n_threads_batch = engine.options().n_threads;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
    params.type_k = engine.options().k_type == KvType::kF16 ? GGML_TYPE_F16 : GGML_TYPE_Q8_0;
    params.type_v = engine.options().v_type == KvType::kF16 ? GGML_TYPE_F16 : GGML_TYPE_Q8_0;
    context_.reset(llama_init_from_model(const_cast<llama_model*>(engine.model()), params));
    FERMATA_CHECK(context_ != nullptr);
    n_vocab_ = engine.info().n_vocab;
  }

  // The logits after the last of these tokens: [n_vocab].
  std::span<const float> logits_after(std::span<const TokenId> tokens) {
    FERMATA_CHECK(!tokens.empty());
    std::size_t common = 0;
    while (common < tokens.size() && common < done_.size() && tokens[common] == done_[common]) ++common;
    if (common == tokens.size()) --common;  // its logits are gone
    llama_memory_seq_rm(llama_get_memory(context_.get()), 0, static_cast<llama_pos>(common), -1);
    done_.assign(tokens.begin(), tokens.end());
    for (std::size_t i = common; i < tokens.size(); ++i) {
      llama_token token = raw(tokens[i]);
      FERMATA_CHECK_EQ(llama_decode(context_.get(), llama_batch_get_one(&token, 1)), 0);
    }
    return {llama_get_logits_ith(context_.get(), -1), static_cast<std::size_t>(n_vocab_)};
  }

 private:
  ContextPtr context_;
  std::int32_t n_vocab_ = 0;
  std::vector<TokenId> done_;
};

}  // namespace fermata::test
