#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "engine/sampling/sampler.h"
#include "generation/journal.h"
#include "generation/request.h"

struct llama_model;
struct llama_context;

namespace fermata::oracle {

// What a generation is supposed to be, token by token.
struct Expected {
  std::vector<TokenId> tokens;            // behind the prompt: those that were given, then those that were sampled
  std::vector<std::uint64_t> row_hashes;  // of the logits row each of them was chosen from; 0: it was given
  Position n_generated = 0;               // of the completion
};

std::uint64_t hash_row(const float* row, std::size_t n);

// The reference: a plain loop over llama_decode that shares no code with the engine, the pool, the loop or Generation.
// One sequence alone in a context of its own that was just cleared; the whole prompt in chunks of 512, then one token
// at a time. It runs until the end of generation, n_tokens_max, or a stop string, found by searching the whole text.
class PlainLoop {
 public:
  // `model` must outlive it. Throws std::runtime_error if libllama refuses (tests may).
  PlainLoop(llama_model* model, const std::string& kv_type, std::int32_t n_cells, std::int32_t n_threads);
  ~PlainLoop();
  PlainLoop(const PlainLoop&) = delete;
  PlainLoop& operator=(const PlainLoop&) = delete;

  // `given`: rows that stand behind the prompt already, such as those of an edited generation.
  Expected run(const Request& request, const std::vector<JournalRow>& given, const SamplerFactory& samplers);

 private:
  // Decodes tokens [from, end) and returns the logits row of the last one.
  const float* compute(const std::vector<TokenId>& tokens, std::size_t from);

  const llama_model* model_;
  llama_context* context_;
  std::int32_t n_vocab_;
};

}  // namespace fermata::oracle
