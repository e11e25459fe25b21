#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/ids.h"
#include "engine/sampling/row_scan.h"

namespace fermata {

struct Candidate {
  TokenId id{};
  float logit = 0;
  float p = 0;  // set by softmax()
};

// Buffers that outlive one row, so that sampling allocates nothing.
struct CandidateScratch {
  std::vector<Candidate> list;
  std::vector<float> values;
  std::vector<std::uint64_t> keys;
};

// The tokens that may still be chosen from a row, in canonical order: descending logit, ascending id among equals. No
// result depends on how they were found or sorted. All truncations but typical and XTC keep a head of this order, so
// the list is lazy: of a whole row only as many are found and sorted as somebody looks at.
//   whole row:   [found, sorted | the rest of the row, unsorted]     size() counts both
//   truncated:   [found, sorted]
// Tokens with logit -inf are not there. Precondition: no NaN in the row, its max finite.
class Candidates {
 public:
  Candidates(std::span<const float> row, const RowScan& scan, CandidateScratch& scratch);

  bool whole() const { return whole_; }
  std::size_t size() const;  // O(n_vocab) while whole

  // The first n, fewer if there are fewer.
  std::span<Candidate> top(std::size_t n);
  std::span<Candidate> all() { return top(row_.size()); }
  bool has(std::size_t index) { return index < top(index + 1).size(); }
  Candidate& at(std::size_t index) { return top(index + 1)[index]; }

  // A hint that all with a logit of about this or more will be looked at: finds them in one go.
  void look_down_to(float logit);

  // Calls f(logit) for each, in ascending id order while whole.
  template <class F>
  void for_each_logit(F&& f) const {
    if (!whole_) {
      for (const Candidate& candidate : list_) f(candidate.logit);
      return;
    }
    for (const float logit : row_) {
      if (logit != -std::numeric_limits<float>::infinity()) f(logit);
    }
  }

  void keep_first(std::size_t n);
  void drop_first(std::size_t n);
  // Replaces the list by `chosen`, which must be a subset of all(); sorts it.
  void replace(std::vector<Candidate> chosen);

  // Sets p of those found and of those yet to be found.
  void softmax();
  // Divides all logits. The order stays that of the logits before, also where rounding made two equal. At most once.
  void set_temperature(float temperature);

  // Of the whole row at the temperature set: sum of e^((logit - max) / T) and its weighted twin. Precondition: whole().
  ExpSums row_sums() const { return exp_sums(row_, scan_.max, 1 / temperature_); }

 private:
  float bound_of(std::size_t n);
  void find(float bound);
  void set_p(std::span<Candidate> found) const;

  std::span<const float> row_;
  const RowScan& scan_;
  CandidateScratch& scratch_;
  std::vector<Candidate>& list_;
  bool whole_ = true;
  bool complete_ = false;  // the list holds all of the row
  float temperature_ = 1;
  double row_weight_ = 0;  // > 0: softmax() was asked of the whole row
};

}  // namespace fermata
