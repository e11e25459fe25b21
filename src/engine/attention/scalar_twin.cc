#include "engine/attention/scalar_twin.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/check.h"
#include "ggml.h"

namespace fermata::attention {
namespace {

ggml_type ggml_type_of(KvType type) {
  switch (type) {
    case KvType::kF32: return GGML_TYPE_F32;
    case KvType::kF16: return GGML_TYPE_F16;
    case KvType::kBf16: return GGML_TYPE_BF16;
    case KvType::kQ8_0: return GGML_TYPE_Q8_0;
  }
  FERMATA_CHECK(false);
  return GGML_TYPE_COUNT;
}

std::vector<float> numbers_of(const KvRows& rows, int kv_head, std::uint32_t cell) {
  const std::byte* row = rows.data + cell * rows.cell_bytes + kv_head * rows.head_bytes;
  std::vector<float> numbers(rows.dims);
  if (rows.type == KvType::kF32) {
    std::memcpy(numbers.data(), row, numbers.size() * sizeof(float));
  } else {
    ggml_get_type_traits(ggml_type_of(rows.type))->to_float(row, numbers.data(), rows.dims);
  }
  return numbers;
}

void attend_lane(const Block& block, int row, int head) {
  const Operands& operands = *block.operands;
  const Interval own = block.own[row];
  const float* query = block.query(row, head);
  std::vector<float> weights;
  float largest = -std::numeric_limits<float>::infinity();
  for (int c = own.begin; c < own.end; ++c) {
    const std::vector<float> key = numbers_of(operands.keys, block.kv_head, block.cells[c]);
    float score = 0.0F;
    for (int dim = 0; dim < operands.keys.dims; ++dim) score = std::fma(key[dim], query[dim] * operands.scale, score);
    weights.push_back(score);
    largest = std::max(largest, score);
  }
  float total = 0.0F;
  for (float& weight : weights) {
    weight = exp_plainly(weight - largest);
    total += weight;
  }
  std::vector<float> sums(operands.values.dims, 0.0F);
  for (int c = own.begin; c < own.end; ++c) {
    const std::vector<float> value = numbers_of(operands.values, block.kv_head, block.cells[c]);
    for (int dim = 0; dim < operands.values.dims; ++dim) {
      sums[dim] = std::fma(value[dim], weights[c - own.begin], sums[dim]);
    }
  }
  const float factor = 1.0F / total;
  for (int dim = 0; dim < operands.values.dims; ++dim) block.out(row, head)[dim] = sums[dim] * factor;
}

}  // namespace

float exp_plainly(float x) {
  constexpr float kMagic = 12582912.0F;
  const float shifted = std::fma(x, 1.44269504F, kMagic);
  const float n = shifted - kMagic;
  float r = std::fma(-n, 0.693359375F, x);
  r = std::fma(-n, -2.12194440e-4F, r);
  float p = 1.9875691500e-4F;
  p = std::fma(p, r, 1.3981999507e-3F);
  p = std::fma(p, r, 8.3334519073e-3F);
  p = std::fma(p, r, 4.1665795894e-2F);
  p = std::fma(p, r, 1.6666665459e-1F);
  p = std::fma(p, r, 5.0000001201e-1F);
  p = std::fma(r * r, p, r + 1.0F);
  const std::uint32_t exponent = std::bit_cast<std::uint32_t>(shifted) << 23;
  return x < -86.0F ? 0.0F : std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + exponent);
}

void attend_plainly(const Block& block) {
  for (int row = 0; row < block.n_rows; ++row) {
    for (int head = 0; head < block.n_heads; ++head) attend_lane(block, row, head);
  }
}

}  // namespace fermata::attention
