#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/ids.h"

// Vectorised passes over a logits row [n_vocab]. Their results do not depend on the vector width of the machine: sums
// run in 16 fixed lanes whatever the width, products and sums are not fused, lanes are added in order.
namespace fermata {

inline constexpr std::size_t kScanBlock = 64;

// The largest logit of every block of kScanBlock. A cheap index: who looks for the best few tokens reads few blocks.
struct RowScan {
  std::vector<float> block_max;  // [ceil(n_vocab / kScanBlock)]
  float max = 0;                 // -inf if no token is left
  bool has_nan = false;
};
void scan_row(std::span<const float> row, RowScan& scan);

// The smallest id among those with the largest logit. Precondition: scan.max > -inf, no NaN.
TokenId argmax(std::span<const float> row, const RowScan& scan);

// With x = (logit - max) * scale, over all tokens (those far below the best count as e^-87, which no sum shows):
struct ExpSums {
  double weight = 0;    // sum of e^x
  double weighted = 0;  // sum of x e^x
};
ExpSums exp_sums(std::span<const float> row, float max, float scale);

// Which vector code runs here, e.g. "AVX3".
const char* row_scan_target();

}  // namespace fermata
