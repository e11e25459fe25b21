#include "engine/sampling/history.h"

#include <algorithm>

namespace fermata {

void History::push(TokenId token) {
  if (capacity_ == 0) return;
  if (ring_.size() < capacity_) {
    ring_.push_back(token);
    next_ = ring_.size() % capacity_;
    return;
  }
  ring_[next_] = token;
  next_ = (next_ + 1) % capacity_;
}

void apply_penalties(const PenaltyParams& params, const History& history, std::span<float> row,
                     std::vector<std::int32_t>& counts) {
  counts.resize(row.size());  // all zero between calls
  const std::size_t n = std::min(params.last_n, history.size());
  for (std::size_t i = 0; i < n; ++i) ++counts[static_cast<std::size_t>(raw(history.from_newest(i)))];
  for (std::size_t i = 0; i < n; ++i) {
    const auto token = static_cast<std::size_t>(raw(history.from_newest(i)));
    if (counts[token] == 0) continue;  // done at a newer place
    float& logit = row[token];
    logit = logit <= 0 ? logit * params.repeat : logit / params.repeat;
    logit -= static_cast<float>(counts[token]) * params.frequency + params.presence;
    counts[token] = 0;
  }
}

}  // namespace fermata
