#include "engine/llama/block_products.h"

#include <ggml.h>

#include <atomic>

struct ggml_compute_params;

namespace fermata {
namespace {

std::atomic<std::int32_t> g_n_rows_min{BlockProducts{}.n_rows_min};
std::atomic<bool> g_floats{BlockProducts{}.floats};

bool takes_block(int weights_type, std::int64_t n_rows) {
  if (n_rows < g_n_rows_min.load(std::memory_order_relaxed)) return false;
  return ggml_is_quantized(static_cast<ggml_type>(weights_type)) || g_floats.load(std::memory_order_relaxed);
}

}  // namespace

void choose_block_products(const BlockProducts& choice) {
  g_n_rows_min.store(choice.n_rows_min, std::memory_order_relaxed);
  g_floats.store(choice.floats, std::memory_order_relaxed);
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
  if (!fermata::takes_block(a_type, n)) return false;
  return __real_llamafile_sgemm(params, m, n, k, a, lda, b, ldb, c, ldc, a_type, b_type, c_type);
}
}
