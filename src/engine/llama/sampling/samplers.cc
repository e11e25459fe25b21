#include "engine/llama/sampling/samplers.h"

#include <utility>
#include <vector>

#include "engine/llama/sampling/json_schema.h"
#include "engine/llama/vocabulary.h"
#include "engine/sampling/chain_sampler.h"
#include "llama.h"

namespace fermata {

std::unique_ptr<SamplerFactory> make_llama_samplers(const llama_model* model) {
  auto vocabulary = LlamaVocabulary::make(model);
  FERMATA_CHECK(vocabulary.has_value());
  std::int32_t n = 0;
  const llama_token* suppressed = llama_vocab_get_suppress_tokens(llama_model_get_vocab(model), &n);
  std::vector<TokenId> never;
  for (std::int32_t i = 0; i < n; ++i) never.push_back(TokenId{suppressed[i]});
  return std::make_unique<ChainSamplerFactory>(std::shared_ptr<const Vocabulary>(std::move(*vocabulary)),
                                               std::move(never), json_schema_grammar);
}

}  // namespace fermata
