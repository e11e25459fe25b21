#include "engine/sampling/candidates.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "base/check.h"
#include "engine/sampling/order_keys.h"

namespace fermata {
namespace {

constexpr float kImpossible = -std::numeric_limits<float>::infinity();
constexpr std::size_t kFindAtLeast = 48;  // a little more than the default top_k
constexpr std::size_t kGrowth = 4;

bool before(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : raw(a.id) < raw(b.id);
}

}  // namespace

Candidates::Candidates(std::span<const float> row, const RowScan& scan, CandidateScratch& scratch)
    : row_(row), scan_(scan), scratch_(scratch), list_(scratch.list) {
  list_.clear();
}

std::size_t Candidates::size() const {
  if (!whole_ || complete_) return list_.size();
  return row_.size() - static_cast<std::size_t>(std::count(row_.begin(), row_.end(), kImpossible));
}

std::span<Candidate> Candidates::top(std::size_t n) {
  if (n > list_.size() && whole_ && !complete_) {
    find(bound_of(std::max({n, kFindAtLeast, list_.size() * kGrowth})));
  }
  return {list_.data(), std::min(n, list_.size())};
}

// A logit that at least n tokens reach. The n-th largest block maximum is one, and all that reach it stand in blocks
// whose maximum does: so for n << n_vocab few blocks are read.
float Candidates::bound_of(std::size_t n) {
  const std::size_t n_blocks = scan_.block_max.size();
  if (n >= row_.size() / 2) return kImpossible;
  const bool few = n <= n_blocks / 2;
  auto& values = scratch_.values;
  const std::span<const float> source = few ? std::span<const float>(scan_.block_max) : row_;
  values.assign(source.begin(), source.end());
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(n - 1), values.end(), std::greater<>());
  return values[n - 1];
}

void Candidates::look_down_to(float logit) {
  const float bound = logit * temperature_;
  if (!whole_ || complete_ || (!list_.empty() && list_.back().logit < logit)) return;
  find(std::min(bound, bound_of(kFindAtLeast)));
}

// All that reach the bound, sorted.
void Candidates::find(float bound) {
  complete_ = bound == kImpossible;
  auto& keys = scratch_.keys;
  keys.clear();
  for (std::size_t block = 0; block < scan_.block_max.size(); ++block) {
    if (scan_.block_max[block] < bound) continue;
    const std::size_t end = std::min(row_.size(), (block + 1) * kScanBlock);
    for (std::size_t i = block * kScanBlock; i < end; ++i) {
      if (row_[i] < bound || row_[i] == kImpossible) continue;
      keys.push_back(std::uint64_t{~ascending_bits(row_[i])} << 32 | i);
    }
  }
  sort_keys(keys);
  list_.resize(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto id = static_cast<std::int32_t>(keys[i] & 0xFFFFFFFF);
    list_[i] = {TokenId{id}, row_[static_cast<std::size_t>(id)] / temperature_, 0};
  }
  if (row_weight_ > 0) set_p(list_);
}

void Candidates::keep_first(std::size_t n) {
  FERMATA_CHECK(n > 0);
  list_.resize(top(n).size());
  whole_ = false;
}

void Candidates::drop_first(std::size_t n) {
  all();
  FERMATA_CHECK_LT(n, list_.size());
  list_.erase(list_.begin(), list_.begin() + static_cast<std::ptrdiff_t>(n));
  whole_ = false;
}

void Candidates::replace(std::vector<Candidate> chosen) {
  FERMATA_CHECK(!chosen.empty());
  std::sort(chosen.begin(), chosen.end(), before);
  list_.assign(chosen.begin(), chosen.end());
  whole_ = false;
}

void Candidates::softmax() {
  if (whole_ && !complete_) {
    row_weight_ = row_sums().weight;
    set_p(list_);
    return;
  }
  const float max = list_[0].logit;
  float sum = 0;
  for (Candidate& candidate : list_) {
    candidate.p = std::exp(candidate.logit - max);
    sum += candidate.p;
  }
  for (Candidate& candidate : list_) candidate.p /= sum;
}

void Candidates::set_p(std::span<Candidate> found) const {
  const float max = scan_.max / temperature_;
  for (Candidate& candidate : found) {
    candidate.p = static_cast<float>(static_cast<double>(std::exp(candidate.logit - max)) / row_weight_);
  }
}

void Candidates::set_temperature(float temperature) {
  FERMATA_CHECK(temperature > 0 && temperature_ == 1);
  temperature_ = temperature;
  row_weight_ = 0;
  for (Candidate& candidate : list_) candidate.logit /= temperature;
}

}  // namespace fermata
