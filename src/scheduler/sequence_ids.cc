#include "scheduler/sequence_ids.h"

#include <algorithm>

#include "base/check.h"

namespace fermata {

SequenceIds::SequenceIds(std::int32_t n_seqs) : n_seqs_(n_seqs) {
  FERMATA_CHECK_LE(2, n_seqs);
  FERMATA_CHECK_LE(n_seqs, limits::kSequencesMax);
}

std::optional<SeqId> SequenceIds::take() {
  while (first_free_ < n_seqs_ - 1 && taken_.test(static_cast<std::size_t>(first_free_))) ++first_free_;
  if (first_free_ == n_seqs_ - 1) return std::nullopt;
  taken_.set(static_cast<std::size_t>(first_free_));
  ++n_taken_;
  return SeqId{first_free_++};
}

void SequenceIds::give_back(SeqId seq) {
  FERMATA_CHECK(is_taken(seq));
  taken_.reset(static_cast<std::size_t>(raw(seq)));
  --n_taken_;
  first_free_ = std::min(first_free_, raw(seq));
}

bool SequenceIds::is_taken(SeqId seq) const {
  FERMATA_CHECK_LE(0, raw(seq));
  FERMATA_CHECK_LT(raw(seq), n_seqs_);
  return taken_.test(static_cast<std::size_t>(raw(seq)));
}

}  // namespace fermata
