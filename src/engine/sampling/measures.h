#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/ids.h"
#include "engine/sampling/row_scan.h"

namespace fermata {

// What a logits row says at temperature 1, before any sampler: p = softmax(row).
struct RowMeasures {
  float max = 0;      // the largest logit
  float log_sum = 0;  // log sum of e^(logit - max), so that log p(t) = logit(t) - max - log_sum
  float entropy = 0;  // nats
  float margin = 0;   // log p(best) - log p(second best); +inf if there is but one token

  float logprob(float logit) const { return logit - max - log_sum; }
};

// Precondition: the scan is of this row, without NaN, its max finite.
RowMeasures measure_row(std::span<const float> row, const RowScan& scan);

struct TokenLogprob {
  TokenId token{};
  float logprob = 0;
  bool operator==(const TokenLogprob&) const = default;
};

// The n most likely tokens, best first, the smaller id first among equals; fewer where fewer are possible. Empty for a
// row that holds NaN or no possible token.
std::vector<TokenLogprob> log_softmax_top(std::span<const float> row, std::size_t n);

}  // namespace fermata
