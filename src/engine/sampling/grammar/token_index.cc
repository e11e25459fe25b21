#include "engine/sampling/grammar/token_index.h"

#include <algorithm>

namespace fermata {

TokenIndex::TokenIndex(const Vocabulary& vocabulary) {
  const auto n = static_cast<std::size_t>(vocabulary.n_tokens());
  bytes_.resize(n);
  ends_.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    const TokenId token{static_cast<std::int32_t>(i)};
    bytes_[i] = vocabulary.bytes(token);
    ends_[i] = vocabulary.ends_generation(token);
    if (ends_[i]) {
      end_tokens_.push_back(token);
    } else if (!bytes_[i].empty()) {
      sorted_.push_back({token, 0, bytes_[i]});
    }
    longest_ = std::max(longest_, bytes_[i].size());
  }
  std::sort(sorted_.begin(), sorted_.end(), [](const Entry& a, const Entry& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : raw(a.token) < raw(b.token);
  });
  for (std::size_t i = 1; i < sorted_.size(); ++i) {
    const auto &before = sorted_[i - 1].bytes, &bytes = sorted_[i].bytes;
    const auto differ = std::mismatch(before.begin(), before.end(), bytes.begin(), bytes.end());
    sorted_[i].n_shared = static_cast<std::uint32_t>(differ.second - bytes.begin());
  }
}

}  // namespace fermata
