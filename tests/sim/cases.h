#pragma once

// What the single cases share: a machine with room, small chunks, plain requests, and the run that nobody disturbed.

#include <cstdint>
#include <utility>
#include <vector>

#include "loop_bench.h"

namespace fermata::test {

inline constexpr Position kPromptTokens = 300;

inline FakeOptions roomy() {
  FakeOptions options;
  options.n_cells = 400;
  options.n_seqs = 8;
  return options;
}
inline LoopOptions small_chunks() {
  LoopOptions options;
  options.plan.n_prefill_rows = 32;
  return options;
}

inline std::vector<TokenId> long_prompt(std::int32_t last) {
  std::vector<TokenId> prompt;
  for (Position i = 0; i + 1 < kPromptTokens; ++i) prompt.push_back(TokenId{(i * 7) % 250});
  prompt.push_back(TokenId{last});
  return prompt;
}

inline Request greedy(std::vector<TokenId> prompt, std::int32_t n_tokens) {
  Request request;
  request.prompt = std::move(prompt);
  request.n_tokens_max = n_tokens;
  request.sampling.temperature = 0;
  return request;
}

// The run that nobody disturbed, in a machine of its own.
inline Heard undisturbed(const Request& request) {
  LoopBench bench(roomy(), small_chunks());
  LoopBench::Client client = bench.submit(request);
  bench.run(client);
  return client.heard;
}

}  // namespace fermata::test
