// Compiled once for each instruction set by Highway's foreach_target. Never compile it with contraction of a * b + c:
// which sums are fused is part of the result.
#include "engine/attention/kernels.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include <hwy/cache_control.h>

#include "engine/attention/scratch.h"

// Only sets with fused multiply-add: without it the bits differ. The baseline of a plain x86-64 build has none; it is
// compiled because Highway wants a baseline, to an empty table.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/attention/kernels.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
#include "engine/attention/kernels-inl.h"
#else
HWY_BEFORE_NAMESPACE();
namespace fermata::attention::HWY_NAMESPACE {
const Kernels* kernels() { return nullptr; }
}  // namespace fermata::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fermata::attention {
namespace {

#if HWY_ARCH_X86
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("f16c");
}
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

}  // namespace

void attend(const Kernels& kernels, const Block& block) {
  if (block.n_rows > 1) return kernels.attend_block(block);
  const auto n_scores = static_cast<std::size_t>(block.n_heads) * static_cast<std::size_t>(padded_cells(block.n_cells));
  float* scores = thread_scratch().scores.at_least(n_scores);
  kernels.score_row(block, 0, block.n_cells, scores);
  kernels.weigh_row(block, scores, 0, block.operands->values.dims);
}

std::vector<const Kernels*> usable_kernels() {
  std::vector<const Kernels*> usable;
#if HWY_TARGETS & HWY_AVX3
  if (has_avx512()) usable.push_back(N_AVX3::kernels());
#endif
#if HWY_TARGETS & HWY_AVX2
  if (has_avx2()) usable.push_back(N_AVX2::kernels());
#endif
#if HWY_TARGETS & HWY_NEON
  usable.push_back(N_NEON::kernels());
#endif
  return usable;
}

}  // namespace fermata::attention
#endif
