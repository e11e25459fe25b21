#pragma once

#include <cstdint>

namespace fermata {

// Rows from which ggml's block kernel is faster than one row of the weights at a time: a property of the CPU, so that
// it is the same in every process. Measured: docs/decisions/005-row-invariance.md.
std::int32_t rows_for_blocks();

// ggml multiplies several rows at a time by a kernel of its own (llamafile_sgemm) or one by one; it decides when it is
// compiled, we decide at each product. The linker gives us the calls (--wrap=llamafile_sgemm, CMakeLists.txt); the
// kernel itself is untouched. A few rows are multiplied here: each row of the weights is read once, and ggml's dot
// product taken with every row, so the bits are those of a row alone.
struct BlockProducts {
  std::int32_t n_rows_min = rows_for_blocks();  // that the kernel gets
  // Whether it may multiply weights whose sums it orders otherwise than those of a row alone (F16, BF16, F32, IQ4_NL),
  // so that the bits depend on how many rows there are. Of the other types they are the same either way.
  bool reordered = true;
  bool operator==(const BlockProducts&) const = default;
};

// For the whole process, from the next product on. Not while a step runs.
void choose_block_products(const BlockProducts& choice);

}  // namespace fermata
