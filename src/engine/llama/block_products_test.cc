#include "engine/llama/block_products.h"

#include <ggml-cpu.h>
#include <ggml.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace fermata {
namespace {

constexpr std::int64_t kRow = 512;     // elements; a multiple of every block size
constexpr std::int64_t kWeights = 37;  // rows, that no number of threads divides
constexpr std::int64_t kRowsMax = 24;

std::vector<float> random_floats(std::size_t n, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

struct ContextCloser {
  void operator()(ggml_context* context) const { ggml_free(context); }
};

// weights . rows as ggml computes it in a graph: [n_rows][kWeights]
std::vector<float> product(ggml_type type, const std::vector<char>& weights, const std::vector<float>& rows,
                           std::int64_t n_rows, int n_threads) {
  const std::unique_ptr<ggml_context, ContextCloser> context(ggml_init({std::size_t{16} << 20, nullptr, false}));
  ggml_tensor* const a = ggml_new_tensor_2d(context.get(), type, kRow, kWeights);
  std::memcpy(a->data, weights.data(), weights.size());
  ggml_tensor* const b = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, kRow, n_rows);
  std::memcpy(b->data, rows.data(), static_cast<std::size_t>(n_rows * kRow) * sizeof(float));
  ggml_tensor* const c = ggml_mul_mat(context.get(), a, b);
  ggml_cgraph* const graph = ggml_new_graph(context.get());
  ggml_build_forward_expand(graph, c);
  EXPECT_EQ(ggml_graph_compute_with_ctx(context.get(), graph, n_threads), GGML_STATUS_SUCCESS);
  const float* const values = ggml_get_data_f32(c);
  return {values, values + n_rows * kWeights};
}

// The same by ggml's dot product, one row of the weights with one row at a time.
std::vector<float> by_dots(ggml_type type, const std::vector<char>& weights, const std::vector<float>& rows,
                           std::int64_t n_rows) {
  const ggml_type_traits_cpu* const traits = ggml_get_type_traits_cpu(type);
  const ggml_type row_type = traits->vec_dot_type;
  const std::size_t row_bytes = ggml_row_size(row_type, kRow);
  const std::size_t weights_bytes = ggml_row_size(type, kRow);
  std::vector<float> out;
  std::vector<char> row(row_bytes);
  for (std::int64_t j = 0; j < n_rows; ++j) {
    const float* const from = rows.data() + j * kRow;
    if (row_type == GGML_TYPE_F32)
      std::memcpy(row.data(), from, row_bytes);
    else
      ggml_get_type_traits_cpu(row_type)->from_float(from, row.data(), kRow);
    for (std::int64_t i = 0; i < kWeights; ++i)
      traits->vec_dot(static_cast<int>(kRow), &out.emplace_back(), 0,
                      weights.data() + static_cast<std::size_t>(i) * weights_bytes, 0, row.data(), 0, 1);
  }
  return out;
}

class Products : public testing::TestWithParam<ggml_type> {
 protected:
  // Tiles of K-quants are ggml's own and order sums by the number of rows; ggml reads this once.
  static void SetUpTestSuite() { setenv("GGML_CPU_TILED_MM", "0", 1); }
  void TearDown() override { choose_block_products({}); }
};

// What row-invariance rests on: any number of rows, any number of threads, blocks or not.
TEST_P(Products, a_product_is_the_dot_product_of_its_rows_to_the_bit) {
  const ggml_type type = GetParam();
  ggml_cpu_init();
  std::vector<char> weights(ggml_row_size(type, kRow) * static_cast<std::size_t>(kWeights));
  const std::vector<float> plain = random_floats(static_cast<std::size_t>(kRow * kWeights), 1);
  ASSERT_EQ(ggml_quantize_chunk(type, plain.data(), weights.data(), 0, kWeights, kRow, nullptr), weights.size());
  const std::vector<float> rows = random_floats(static_cast<std::size_t>(kRow * kRowsMax), 2);
  for (const std::int32_t n_rows_min : {1, 8, 1000}) {
    choose_block_products({n_rows_min, false});
    for (const int n_threads : {1, 2, 3})
      for (std::int64_t n_rows = 1; n_rows <= kRowsMax; ++n_rows) {
        const std::vector<float> computed = product(type, weights, rows, n_rows, n_threads);
        const std::vector<float> expected = by_dots(type, weights, rows, n_rows);
        ASSERT_EQ(std::memcmp(computed.data(), expected.data(), expected.size() * sizeof(float)), 0)
            << n_rows << " rows, " << n_threads << " threads, blocks from " << n_rows_min;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Products,
                         testing::Values(GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_F32,
                                         GGML_TYPE_Q4_K, GGML_TYPE_Q6_K, GGML_TYPE_IQ4_NL, GGML_TYPE_Q5_0,
                                         GGML_TYPE_Q4_1, GGML_TYPE_Q5_1),
                         [](const auto& type) { return std::string(ggml_type_name(type.param)); });

}  // namespace
}  // namespace fermata
