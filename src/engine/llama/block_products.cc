#include "engine/llama/block_products.h"

#include <ggml-cpu-impl.h>  // what a kernel is told of the thread it runs in
#include <ggml-cpu.h>
#include <ggml.h>

#include <atomic>

namespace fermata {
namespace {

constexpr std::int32_t kFewRowsMax =
    16;  // beyond, ggml's own loop, which goes back to the weights, has the better cache

std::atomic<std::int32_t> g_n_rows_min{BlockProducts{}.n_rows_min};
std::atomic<bool> g_reordered{BlockProducts{}.reordered};

bool keeps_sums(ggml_type weights) {
  return weights == GGML_TYPE_Q8_0 || weights == GGML_TYPE_Q4_0 || weights == GGML_TYPE_Q5_0;
}

bool takes_block(int weights_type, std::int64_t n_rows) {
  if (n_rows < g_n_rows_min.load(std::memory_order_relaxed)) return false;
  return keeps_sums(static_cast<ggml_type>(weights_type)) || g_reordered.load(std::memory_order_relaxed);
}

// A matrix of rows that are a constant way from each other. [n][n_row]
struct Rows {
  const char* first;
  std::size_t stride_bytes;
  std::int64_t n;
  const char* operator[](std::int64_t i) const { return first + static_cast<std::size_t>(i) * stride_bytes; }
};

// out[j * out_stride + i] = weights[i] . rows[j], for this thread's share of i. n_row: elements of a row.
void multiply_few(ggml_vec_dot_t dot, std::int64_t n_row, const Rows& weights, const Rows& rows, float* out,
                  std::int64_t out_stride, const ggml_compute_params& thread) {
  const std::int64_t end = weights.n * (thread.ith + 1) / thread.nth;
  for (std::int64_t i = weights.n * thread.ith / thread.nth; i < end; ++i)
    for (std::int64_t j = 0; j < rows.n; ++j)
      dot(static_cast<int>(n_row), out + j * out_stride + i, 0, weights[i], 0, rows[j], 0, 1);
}

}  // namespace

std::int32_t rows_for_blocks() {
#if defined(__x86_64__)
  static const bool is_amd = __builtin_cpu_is("amd") != 0;
  if (is_amd) return 8;
#endif
  return 16;
}

void choose_block_products(const BlockProducts& choice) {
  g_n_rows_min.store(choice.n_rows_min, std::memory_order_relaxed);
  g_reordered.store(choice.reordered, std::memory_order_relaxed);
}

}  // namespace fermata

extern "C" {

// m: rows of the weights, n: rows to multiply, k: their blocks. False: ggml multiplies row by row.
bool __real_llamafile_sgemm(const ggml_compute_params* params, std::int64_t m, std::int64_t n, std::int64_t k,
                            const void* a, std::int64_t lda, const void* b, std::int64_t ldb, void* c, std::int64_t ldc,
                            int a_type, int b_type, int c_type);

bool __wrap_llamafile_sgemm(const ggml_compute_params* params, std::int64_t m, std::int64_t n, std::int64_t k,
                            const void* a, std::int64_t lda, const void* b, std::int64_t ldb, void* c, std::int64_t ldc,
                            int a_type, int b_type, int c_type) {
  using namespace fermata;
  if (takes_block(a_type, n) && __real_llamafile_sgemm(params, m, n, k, a, lda, b, ldb, c, ldc, a_type, b_type, c_type))
    return true;  // it refuses types and sizes that it does not know, before it has done anything
  const auto weights_type = static_cast<ggml_type>(a_type);
  const ggml_type_traits_cpu* traits = ggml_get_type_traits_cpu(weights_type);
  const bool are_few = n <= kFewRowsMax && traits->vec_dot && b_type == traits->vec_dot_type && c_type == GGML_TYPE_F32;
  if (!are_few) return false;
  const auto bytes = [](int type, std::int64_t n_blocks) {
    return ggml_type_size(static_cast<ggml_type>(type)) * static_cast<std::size_t>(n_blocks);
  };
  multiply_few(traits->vec_dot, k * ggml_blck_size(weights_type), {static_cast<const char*>(a), bytes(a_type, lda), m},
               {static_cast<const char*>(b), bytes(b_type, ldb), n}, static_cast<float*>(c), ldc, *params);
  return true;
}
}
