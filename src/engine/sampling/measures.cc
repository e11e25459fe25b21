#include "engine/sampling/measures.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/sampling/candidates.h"

namespace fermata {
namespace {

// The second largest logit: the best of the other blocks, or the runner-up in the best one's.
float second_best(std::span<const float> row, const RowScan& scan) {
  const auto best = static_cast<std::size_t>(raw(argmax(row, scan)));
  const std::size_t block = best / kScanBlock;
  float second = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < scan.block_max.size(); ++i) {
    if (i != block) second = std::max(second, scan.block_max[i]);
  }
  for (std::size_t i = block * kScanBlock; i < std::min(row.size(), (block + 1) * kScanBlock); ++i) {
    if (i != best) second = std::max(second, row[i]);
  }
  return second;
}

}  // namespace

RowMeasures measure_row(std::span<const float> row, const RowScan& scan) {
  const ExpSums sums = exp_sums(row, scan.max, 1);
  const double log_sum = std::log(sums.weight);
  RowMeasures measures;
  measures.max = scan.max;
  measures.log_sum = static_cast<float>(log_sum);
  measures.entropy = static_cast<float>(std::max(0.0, log_sum - sums.weighted / sums.weight));
  measures.margin = scan.max - second_best(row, scan);
  return measures;
}

std::vector<TokenLogprob> log_softmax_top(std::span<const float> row, std::size_t n) {
  RowScan scan;
  scan_row(row, scan);
  if (scan.has_nan || !std::isfinite(scan.max)) return {};
  const RowMeasures measures = measure_row(row, scan);
  CandidateScratch scratch;
  Candidates candidates(row, scan, scratch);
  std::vector<TokenLogprob> top;
  for (const Candidate& candidate : candidates.top(n)) {
    top.push_back({candidate.id, measures.logprob(candidate.logit)});
  }
  return top;
}

}  // namespace fermata
