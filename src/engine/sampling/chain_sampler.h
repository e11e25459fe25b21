#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/sampling/dry.h"
#include "engine/sampling/grammar/grammar.h"
#include "engine/sampling/grammar/token_index.h"
#include "engine/sampling/sampler.h"
#include "engine/vocabulary.h"

namespace fermata {

// Turns a JSON schema into a GBNF grammar. kInvalidArgument or kTooLarge, naming json_schema and the place.
using SchemaToGrammar = std::function<Result<std::string>(std::string_view)>;

// The whole chain, in llama.cpp's order:
//   row -> logit bias -> penalties -> DRY -> top-n-sigma -> top-k -> typical -> top-p -> min-p -> XTC -> temperature
//       -> dist or adaptive-p                                   (mirostat: in place of all from top-n-sigma to XTC,
//       dist)
// Temperature 0 takes the most likely token of the row after DRY, whatever stands behind.
// With a grammar, a token is chosen without it and checked; only if it does not fit, all that do not fit are struck out
// of the row and the chain chooses again, with random numbers of its own (Attempt::kWithGrammar). Both are pure
// functions of row, state and position, so the two steps are one.
class ChainSamplerFactory : public SamplerFactory {
 public:
  // `never`: tokens that the model's files say must not be generated. `schema_to_grammar` may be empty: json_schema is
  // then refused.
  ChainSamplerFactory(std::shared_ptr<const Vocabulary> vocabulary, std::vector<TokenId> never,
                      SchemaToGrammar schema_to_grammar);
  Result<std::unique_ptr<Sampler>> make(const SamplingParams& params) const override;

 private:
  std::shared_ptr<const DryBreakers> breakers_for(const SamplingParams& params) const;
  Result<std::shared_ptr<const Grammar>> grammar_for(const SamplingParams& params) const;

  std::shared_ptr<const Vocabulary> vocabulary_;
  std::vector<TokenId> never_;
  SchemaToGrammar schema_to_grammar_;
  std::shared_ptr<const TokenIndex> tokens_;

  // The last sets of breakers asked for: almost always the default.
  struct KnownBreakers {
    std::vector<std::string> strings;
    std::shared_ptr<const DryBreakers> breakers;
  };
  mutable std::mutex mutex_;
  mutable std::vector<KnownBreakers> known_;
};

}  // namespace fermata
