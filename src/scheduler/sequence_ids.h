#pragma once

#include <bitset>
#include <cstdint>
#include <optional>

#include "base/ids.h"
#include "base/limits.h"

namespace fermata {

// The budget of sequence ids: there are no more than limits::kSequencesMax in a pool, for all that runs, is paused, or
// is kept as prefix cache. The last one is never given out: pages move through it. Owner: the engine thread.
class SequenceIds {
 public:
  // 2 <= n_seqs <= limits::kSequencesMax.
  explicit SequenceIds(std::int32_t n_seqs);

  // The smallest free id; nothing if all are taken.
  std::optional<SeqId> take();
  // Precondition: take() gave it out, and its sequence is empty.
  void give_back(SeqId seq);

  bool is_taken(SeqId seq) const;
  std::int32_t n_free() const { return n_seqs_ - 1 - n_taken_; }
  std::int32_t n_taken() const { return n_taken_; }
  // The reserved one.
  SeqId moving() const { return SeqId{n_seqs_ - 1}; }

 private:
  std::bitset<limits::kSequencesMax> taken_;
  std::int32_t n_seqs_;
  std::int32_t n_taken_ = 0;
  std::int32_t first_free_ = 0;  // no smaller id is free
};

}  // namespace fermata
