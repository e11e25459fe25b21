#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace fermata {

// The last tokens of a generation, prompt included; older ones are forgotten.
//   index from the newest:  ... 2 1 0
class History {
 public:
  explicit History(std::size_t capacity) : capacity_(capacity) {}

  void push(TokenId token);
  std::size_t size() const { return ring_.size(); }
  // Precondition: back < size().
  TokenId from_newest(std::size_t back) const {
    const std::size_t n = ring_.size();
    return ring_[(next_ + n - 1 - back) % n];
  }

 private:
  std::size_t capacity_;
  std::vector<TokenId> ring_;
  std::size_t next_ = 0;  // where the next token goes
};

struct PenaltyParams {
  std::size_t last_n = 0;
  float repeat = 1;
  float frequency = 0;
  float presence = 0;
  bool active() const { return last_n > 0 && (repeat != 1 || frequency != 0 || presence != 0); }
};

// For each token among the last n: a positive logit is divided by `repeat`, another multiplied (Keskar et al. 2019 as
// corrected by llama.cpp), then frequency times its count and presence once are subtracted. `counts` is a buffer.
void apply_penalties(const PenaltyParams& params, const History& history, std::span<float> row,
                     std::vector<std::int32_t>& counts);

}  // namespace fermata
