#include "generation/journal.h"

#include <algorithm>

#include "base/check.h"
#include "base/limits.h"

namespace fermata {

std::string_view to_string(Origin origin) {
  switch (origin) {
    case Origin::kPrompt: return "prompt";
    case Origin::kSampled: return "sampled";
    case Origin::kForced: return "forced";
    case Origin::kEdited: return "edited";
    case Origin::kInjected: return "injected";
  }
  return "unknown";
}

void Journal::append(const JournalRow& row, std::string_view bytes) {
  FERMATA_CHECK_LT(size(), limits::kTokensMax);
  if (row.role == TokenRole::kGenerated) {
    ++n_generated_;
    text_.append(bytes);
  } else if (n_prompt_ == size()) {
    ++n_prompt_;
  }
  rows_.push_back(row);
  tokens_.push_back(row.token);
  bytes_end_.push_back(text_.size());
}

void Journal::truncate(Position n_rows) {
  FERMATA_CHECK_LE(0, n_rows);
  FERMATA_CHECK_LE(n_rows, size());
  const auto n_kept = static_cast<std::size_t>(n_rows);
  for (std::size_t i = n_kept; i < rows_.size(); ++i)
    if (rows_[i].role == TokenRole::kGenerated) --n_generated_;
  text_.resize(bytes_begin(n_rows));
  rows_.resize(n_kept);
  tokens_.resize(n_kept);
  bytes_end_.resize(n_kept);
  n_prompt_ = std::min(n_prompt_, n_rows);
}

Position Journal::token_at_byte(std::size_t byte) const {
  FERMATA_CHECK_LE(byte, text_.size());
  // The first row that ends behind the byte; rows without bytes end at or before it.
  const auto row = std::upper_bound(bytes_end_.begin(), bytes_end_.end(), byte);
  return static_cast<Position>(row - bytes_end_.begin());
}

}  // namespace fermata
