#include "engine/sampling/row_scan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/sampling/row_scan.cc"
// Scalable vectors cannot stand in arrays; NEON serves those machines.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace fermata {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kLanes = 16;  // logical lanes of every sum
using D = hn::CappedTag<float, kLanes>;
using DI = hn::RebindToSigned<D>;
using V = hn::Vec<D>;
constexpr std::size_t kWidth = hn::MaxLanes(D());
constexpr std::size_t kVectors = kLanes / kWidth;

bool BlockMaxima(const float* row, std::size_t n, float* out) {
  const D d;
  std::size_t block = 0;
  const std::size_t n_whole = n / kScanBlock * kScanBlock;
  V nans = hn::Zero(d);  // all bits set, itself a NaN, where one was seen
  for (std::size_t i = 0; i < n_whole; i += kScanBlock) {
    V best = hn::LoadU(d, row + i);
    for (std::size_t j = 0; j < kScanBlock; j += kWidth) {
      const V v = hn::LoadU(d, row + i + j);
      nans = hn::Or(nans, hn::VecFromMask(d, hn::IsNaN(v)));
      best = hn::Max(best, v);
    }
    out[block++] = hn::GetLane(hn::MaxOfLanes(d, best));
  }
  bool nan = !hn::AllFalse(d, hn::IsNaN(nans));
  if (n_whole < n) {
    float best = -std::numeric_limits<float>::infinity();
    for (std::size_t i = n_whole; i < n; ++i) {
      nan = nan || std::isnan(row[i]);
      best = row[i] > best ? row[i] : best;
    }
    out[block] = best;
  }
  return nan;
}

// e^x for -87 <= x <= 0; the polynomial of Cephes' expf (S. Moshier), error about 1 ulp. Mul and Add on purpose: a
// fused step would round differently on machines that have none.
HWY_INLINE V Exp(V x) {
  const D d;
  const DI di;
  const V n = hn::Round(hn::Mul(x, hn::Set(d, 1.44269504088896341f)));
  V r = hn::Sub(x, hn::Mul(n, hn::Set(d, 0.693359375f)));
  r = hn::Sub(r, hn::Mul(n, hn::Set(d, -2.12194440e-4f)));
  V p = hn::Set(d, 1.9875691500e-4f);
  for (const float c : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f}) {
    p = hn::Add(hn::Mul(p, r), hn::Set(d, c));
  }
  p = hn::Add(hn::Add(hn::Mul(hn::Mul(p, r), r), r), hn::Set(d, 1.0f));
  const auto exponent = hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(di, n), hn::Set(di, 127)));
  return hn::Mul(p, hn::BitCast(d, exponent));
}

struct Lanes {
  double weight[kLanes] = {};
  double weighted[kLanes] = {};
};

// A float sum of at most kRun terms a lane goes into the double sums, which keeps the error near that of one rounding.
constexpr std::size_t kRun = 64;

void AddRun(const float* row, std::size_t n, float max, float scale, Lanes& lanes) {
  const D d;
  V weight[kVectors], weighted[kVectors];
  for (std::size_t j = 0; j < kVectors; ++j) weight[j] = weighted[j] = hn::Zero(d);
  const V vmax = hn::Set(d, max), vscale = hn::Set(d, scale), floor = hn::Set(d, -87.0f);
  for (std::size_t i = 0; i < n; i += kLanes) {
    for (std::size_t j = 0; j < kVectors; ++j) {
      const V x = hn::Max(hn::Mul(hn::Sub(hn::LoadU(d, row + i + j * kWidth), vmax), vscale), floor);
      const V e = Exp(x);
      weight[j] = hn::Add(weight[j], e);
      weighted[j] = hn::Add(weighted[j], hn::Mul(x, e));
    }
  }
  alignas(64) float lane[kLanes];
  for (std::size_t j = 0; j < kVectors; ++j) hn::StoreU(weight[j], d, lane + j * kWidth);
  for (std::size_t j = 0; j < kLanes; ++j) lanes.weight[j] += static_cast<double>(lane[j]);
  for (std::size_t j = 0; j < kVectors; ++j) hn::StoreU(weighted[j], d, lane + j * kWidth);
  for (std::size_t j = 0; j < kLanes; ++j) lanes.weighted[j] += static_cast<double>(lane[j]);
}

ExpSums Sums(const float* row, std::size_t n, float max, float scale) {
  Lanes lanes;
  const std::size_t n_whole = n / kLanes * kLanes;
  for (std::size_t i = 0; i < n_whole; i += kRun * kLanes) {
    AddRun(row + i, std::min(kRun * kLanes, n_whole - i), max, scale, lanes);
  }
  if (n_whole < n) {
    float tail[kLanes];
    for (float& value : tail) value = -std::numeric_limits<float>::infinity();
    std::copy(row + n_whole, row + n, tail);
    AddRun(tail, kLanes, max, scale, lanes);
  }
  ExpSums sums;
  for (std::size_t j = 0; j < kLanes; ++j) {
    sums.weight += lanes.weight[j];
    sums.weighted += lanes.weighted[j];
  }
  return sums;
}

const char* Target() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace fermata
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fermata {

HWY_EXPORT(BlockMaxima);
HWY_EXPORT(Sums);
HWY_EXPORT(Target);

void scan_row(std::span<const float> row, RowScan& scan) {
  scan.block_max.resize((row.size() + kScanBlock - 1) / kScanBlock);
  scan.has_nan = HWY_DYNAMIC_DISPATCH(BlockMaxima)(row.data(), row.size(), scan.block_max.data());
  scan.max = -std::numeric_limits<float>::infinity();
  for (const float best : scan.block_max) scan.max = std::max(scan.max, best);
}

TokenId argmax(std::span<const float> row, const RowScan& scan) {
  const auto block = std::find(scan.block_max.begin(), scan.block_max.end(), scan.max) - scan.block_max.begin();
  const auto begin = static_cast<std::size_t>(block) * kScanBlock;
  const auto end = std::min(begin + kScanBlock, row.size());
  const auto place = std::find(row.begin() + begin, row.begin() + end, scan.max);
  return TokenId{static_cast<std::int32_t>(place - row.begin())};
}

ExpSums exp_sums(std::span<const float> row, float max, float scale) {
  return HWY_DYNAMIC_DISPATCH(Sums)(row.data(), row.size(), max, scale);
}

const char* row_scan_target() { return HWY_DYNAMIC_DISPATCH(Target)(); }

}  // namespace fermata
#endif
