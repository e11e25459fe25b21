#pragma once

#include <cstddef>
#include <cstdint>

namespace fermata::attention {

enum class KvType : std::uint8_t { kF32, kF16, kBf16, kQ8_0 };

// One layer's keys or values in the pool: cell c of head g starts at data + c * cell_bytes + g * head_bytes and holds
// `dims` numbers of `type`, side by side.
struct KvRows {
  const std::byte* data = nullptr;
  std::size_t cell_bytes = 0;
  std::size_t head_bytes = 0;
  KvType type = KvType::kF32;
  int dims = 0;  // a multiple of 16
};

// The tensors of one attention node. Query row r of head h starts at query + r * query_row + h * query_head (floats);
// its output likewise.
struct Operands {
  const float* query = nullptr;
  std::size_t query_row = 0;
  std::size_t query_head = 0;
  KvRows keys;
  KvRows values;
  float* out = nullptr;
  std::size_t out_row = 0;
  std::size_t out_head = 0;
  int n_rows = 0;
  int n_heads = 0;     // of queries
  int n_kv_heads = 0;  // divides n_heads
  float scale = 1.0F;

  int group() const { return n_heads / n_kv_heads; }
};

// A row's own cells: entries [begin, end) of its block's list.
struct Interval {
  std::int32_t begin = 0;
  std::int32_t end = 0;
};

// Query rows that look at one sorted list of cells, and some heads of one group: what one task computes. A lane is one
// (row, head) pair, lane = row * n_heads + head.
struct Block {
  const Operands* operands = nullptr;
  const std::uint32_t* cells = nullptr;  // [n_cells], in position order; each is some row's own
  int n_cells = 0;
  const Interval* own = nullptr;  // [n_rows], into cells; none is empty
  int row_begin = 0;
  int n_rows = 0;
  int kv_head = 0;
  int head_begin = 0;  // of queries, all of kv_head's group
  int n_heads = 0;

  int n_lanes() const { return n_rows * n_heads; }
  const float* query(int row, int head) const {
    return operands->query + (row_begin + row) * operands->query_row + (head_begin + head) * operands->query_head;
  }
  float* out(int row, int head) const {
    return operands->out + (row_begin + row) * operands->out_row + (head_begin + head) * operands->out_head;
  }
};

}  // namespace fermata::attention
