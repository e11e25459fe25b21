#pragma once

#include <cstdint>

namespace fermata {

// ggml multiplies several rows at a time by a kernel of its own (llamafile_sgemm) or one by one; it decides when it is
// compiled, we decide at each product. The linker gives us the calls (--wrap=llamafile_sgemm, CMakeLists.txt); the
// kernel itself is untouched. docs/decisions/005-row-invariance.md has the measurements.
struct BlockProducts {
  // Rows from which the kernel is the faster one. Below, rows are multiplied one by one.
  std::int32_t n_rows_min = 16;
  // Whether it may multiply weights in floating point (F16, BF16, F32): its sums are then ordered otherwise than those
  // of a row alone, so that the bits depend on how many rows there are. Sums of quantised blocks are the same either
  // way.
  bool floats = true;
  bool operator==(const BlockProducts&) const = default;
};

// For the whole process, from the next product on. Not while a step runs.
void choose_block_products(const BlockProducts& choice);

}  // namespace fermata
