#include "engine/sampling/truncate.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "engine/sampling/order_keys.h"

namespace fermata {

void keep_top_k(Candidates& candidates, std::int32_t k) {
  if (k > 0) candidates.keep_first(static_cast<std::size_t>(k));
}

void keep_top_n_sigma(Candidates& candidates, float n) {
  if (n <= 0 || !candidates.has(1)) return;
  double sum = 0, count = 0;
  candidates.for_each_logit([&](float logit) { sum += static_cast<double>(logit), ++count; });
  const double mean = sum / count;
  double squares = 0;
  candidates.for_each_logit([&](float logit) {
    const double distance = static_cast<double>(logit) - mean;
    squares += distance * distance;
  });
  const auto deviation = static_cast<float>(std::sqrt(squares / count));
  const float bound = candidates.at(0).logit - n * deviation;
  candidates.look_down_to(bound);
  std::size_t kept = 1;
  while (candidates.has(kept) && candidates.at(kept).logit >= bound) ++kept;
  candidates.keep_first(kept);
}

void keep_typical(Candidates& candidates, float p, std::size_t min_keep) {
  if (p >= 1) return;
  const auto list = candidates.all();
  candidates.softmax();
  float entropy = 0;
  for (const Candidate& candidate : list) {
    if (candidate.p > 0) entropy += -candidate.p * std::log(candidate.p);
  }
  std::vector<std::uint64_t> order(list.size());  // by distance of the surprise to the expected one, then canonical
  for (std::size_t i = 0; i < list.size(); ++i) {
    order[i] = std::uint64_t{ascending_bits(std::fabs(-std::log(list[i].p) - entropy))} << 32 | i;
  }
  sort_keys(order);
  std::vector<Candidate> kept;
  float sum = 0;
  for (const std::uint64_t key : order) {
    const Candidate& candidate = list[key & 0xFFFFFFFF];
    sum += candidate.p;
    kept.push_back(candidate);
    if (sum > p && kept.size() >= min_keep) break;
  }
  candidates.replace(std::move(kept));
}

void keep_top_p(Candidates& candidates, float p, std::size_t min_keep) {
  if (p >= 1) return;
  candidates.softmax();
  float sum = 0;
  std::size_t kept = 0;
  while (candidates.has(kept)) {
    sum += candidates.at(kept++).p;
    if (sum >= p && kept >= min_keep) break;
  }
  candidates.keep_first(kept);
}

void keep_min_p(Candidates& candidates, float p, std::size_t min_keep) {
  if (p <= 0) return;
  const float bound = candidates.at(0).logit + std::log(p);
  candidates.look_down_to(bound);
  std::size_t kept = 1;
  while (candidates.has(kept) && (candidates.at(kept).logit >= bound || kept < min_keep)) ++kept;
  candidates.keep_first(kept);
}

void apply_temperature(Candidates& candidates, float temperature) { candidates.set_temperature(temperature); }

void apply_dynamic_temperature(Candidates& candidates, float temperature, float range, float exponent) {
  if (range <= 0) return apply_temperature(candidates, temperature);
  if (!candidates.has(1)) return;
  const float lowest = std::max(0.0f, temperature - range), highest = temperature + range;
  float entropy = 0;
  if (candidates.whole()) {
    const ExpSums sums = candidates.row_sums();
    entropy = static_cast<float>(std::log(sums.weight) - sums.weighted / sums.weight);
  } else {
    candidates.softmax();
    for (const Candidate& candidate : candidates.all()) {
      if (candidate.p > 0) entropy -= candidate.p * std::log(candidate.p);
    }
  }
  const float highest_entropy = -std::log(1.0f / static_cast<float>(candidates.size()));
  const float share = std::max(0.0f, entropy / highest_entropy);
  const float dynamic = lowest + (highest - lowest) * std::pow(share, exponent);
  if (dynamic >= kColdest) {
    candidates.set_temperature(dynamic);
  } else {
    candidates.keep_first(1);
  }
}

}  // namespace fermata
