#include "engine/sampling/chance.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace fermata {
namespace {

// Sums p in canonical order until it reaches u times the total.
std::size_t choose_by_p(std::span<const Candidate> list, double u) {
  double total = 0;
  for (const Candidate& candidate : list) total += static_cast<double>(candidate.p);
  const double target = u * total;
  double sum = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    sum += static_cast<double>(list[i].p);
    if (sum >= target) return i;
  }
  return list.size() - 1;
}

TokenId choose_from_whole_row(Candidates& candidates, double u) {
  const double target = u * candidates.row_sums().weight;
  const float max = candidates.at(0).logit;
  double sum = 0;
  std::size_t i = 0;
  for (; candidates.has(i); ++i) {
    sum += static_cast<double>(std::exp(candidates.at(i).logit - max));
    if (sum >= target) return candidates.at(i).id;
  }
  return candidates.at(i - 1).id;
}

Chosen observe(Candidates& candidates, const MirostatParams& params, const SamplerCarry& carry, double u) {
  candidates.softmax();
  const auto list = candidates.all();
  const Candidate& chosen = list[choose_by_p(list, u)];
  const float error = -std::log2(chosen.p) - params.tau;
  return {chosen.id, {carry.first - params.eta * error, 1}};
}

// Of Zipf's law, estimated from the best 100 tokens.
float zipf_exponent(Candidates& candidates) {
  constexpr std::size_t kTop = 100;
  const auto top = candidates.top(kTop);
  float sum_tb = 0, sum_tt = 0;
  for (std::size_t i = 0; i + 1 < top.size() && top[i + 1].p > 0; ++i) {
    const float t = std::log(static_cast<float>(i + 2) / static_cast<float>(i + 1));
    sum_tb += t * std::log(top[i].p / top[i + 1].p);
    sum_tt += t * t;
  }
  return sum_tb / sum_tt;
}

constexpr float kAdaptiveWidth = 0.3f;
constexpr float kAdaptivePeak = 5;
constexpr float kAdaptiveSharpness = 10;

}  // namespace

TokenId choose_dist(Candidates& candidates, double u) {
  if (candidates.whole()) return choose_from_whole_row(candidates, u);
  const auto list = candidates.all();
  const float max = list[0].logit;
  for (Candidate& candidate : list) candidate.p = std::exp(candidate.logit - max);
  return list[choose_by_p(list, u)].id;
}

void exclude_top_choices(Candidates& candidates, float probability, float threshold, std::size_t min_keep, float u) {
  if (probability <= 0 || threshold > 0.5f || !candidates.has(1) || u > probability) return;
  candidates.softmax();
  std::size_t last = 0;  // the least of those that reach the threshold
  for (std::size_t i = 0; candidates.has(i) && candidates.at(i).p >= threshold; ++i) last = i;
  if (last > 0 && candidates.size() - last >= min_keep) candidates.drop_first(last);
}

SamplerCarry mirostat_start(const MirostatParams& params) { return {2 * params.tau, 1}; }

Chosen choose_mirostat_v1(Candidates& candidates, const MirostatParams& params, const SamplerCarry& carry, double u) {
  candidates.at(0);
  candidates.softmax();
  const float s_hat = zipf_exponent(candidates);
  const float epsilon = s_hat - 1;
  const float n_vocab = static_cast<float>(params.n_vocab);
  const float k = std::pow(epsilon * std::pow(2.0f, carry.first) / (1 - std::pow(n_vocab, -epsilon)), 1 / s_hat);
  // llama.cpp casts k to int, which for NaN and for what no int holds means "keep one"; here too much means "keep all".
  std::size_t kept = 1;
  if (k >= n_vocab) {
    kept = static_cast<std::size_t>(params.n_vocab);
  } else if (k > 1) {
    kept = static_cast<std::size_t>(k);
  }
  candidates.keep_first(kept);
  return observe(candidates, params, carry, u);
}

Chosen choose_mirostat_v2(Candidates& candidates, const MirostatParams& params, const SamplerCarry& carry, double u) {
  candidates.at(0);
  candidates.softmax();
  constexpr float kLn2 = 0.6931472f;  // -log2 p <= mu is the same as logit >= ...
  candidates.look_down_to(candidates.at(0).logit - std::log(candidates.at(0).p) - carry.first * kLn2);
  std::size_t kept = 0;
  while (candidates.has(kept) && !(-std::log2(candidates.at(kept).p) > carry.first)) ++kept;
  candidates.keep_first(std::max<std::size_t>(kept, 1));
  return observe(candidates, params, carry, u);
}

SamplerCarry adaptive_start(const AdaptiveParams& params) {
  const float decay = std::clamp(params.decay, 0.0f, 0.99f);
  return {params.target / (1 - decay), 1 / (1 - decay)};
}

Chosen choose_adaptive(Candidates& candidates, const AdaptiveParams& params, const SamplerCarry& carry, double u) {
  const float decay = std::clamp(params.decay, 0.0f, 0.99f);
  const auto list = candidates.all();
  candidates.softmax();
  const float target = std::clamp(params.target, 0.0f, 1.0f);
  const float adapted = std::clamp(2 * target - carry.first / carry.second, 0.0f, 1.0f);
  // Quadratic near the target, linear in the tails; a token far from it becomes improbable, never impossible.
  std::vector<float> weight(list.size());
  float best = -1e30f;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const float distance = std::fabs((list[i].p - adapted) * (1.0f / kAdaptiveWidth));
    weight[i] = kAdaptivePeak - kAdaptiveSharpness * distance * distance / (1.0f + distance);
    best = std::max(best, weight[i]);
  }
  double total = 0;
  for (float& w : weight) total += static_cast<double>(w = std::exp(w - best));
  double sum = 0;
  std::size_t index = 0;
  for (; index + 1 < list.size(); ++index) {
    sum += static_cast<double>(weight[index]);
    if (sum >= u * total) break;
  }
  return {list[index].id, {list[index].p + decay * carry.first, 1 + decay * carry.second}};
}

}  // namespace fermata
