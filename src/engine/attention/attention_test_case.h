#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/ids.h"
#include "ggml.h"

namespace fermata::attention {

// What a random attention node is made of.
struct TestShape {
  int key_dims = 64;
  int value_dims = 64;
  int n_kv_heads = 2;
  int group = 3;
  int n_rows = 1;
  int n_cells = 100;
  int n_seqs = 1;
  int window = 0;            // 0: none; else a row sees only so many positions back
  bool shuffled = false;     // positions are not in cell order
  bool random_mask = false;  // any set of cells per row, whatever its sequence
  ggml_type key_type = GGML_TYPE_F16;
  ggml_type value_type = GGML_TYPE_F16;
};

// A random attention node over a pool of cells whose owners and positions are random too. A cell that no row sees holds
// NaN.
class TestCase {
 public:
  TestCase(const TestShape& shape, std::uint64_t seed) : shape_(shape), random_(seed) {
    place_cells();
    make_mask();
    make_node();
    poison_unseen();
  }
  ~TestCase() { ggml_free(context_); }
  TestCase(const TestCase&) = delete;
  TestCase& operator=(const TestCase&) = delete;

  const TestShape& shape() const { return shape_; }
  ggml_tensor* node() { return node_; }
  const std::vector<Position>& positions() const { return positions_; }
  int n_heads() const { return shape_.n_kv_heads * shape_.group; }
  bool sees(int row, int cell) const { return sees_[row * shape_.n_cells + cell]; }
  bool is_seen(int cell) const {  // by any row
    for (int row = 0; row < shape_.n_rows; ++row) {
      if (sees(row, cell)) return true;
    }
    return false;
  }

  // Of a row, in position order.
  std::vector<std::uint32_t> own_cells(int row) const {
    std::vector<std::uint32_t> own;
    for (int cell = 0; cell < shape_.n_cells; ++cell) {
      if (sees(row, cell)) own.push_back(static_cast<std::uint32_t>(cell));
    }
    std::sort(own.begin(), own.end(),
              [&](auto a, auto b) { return positions_[a] != positions_[b] ? positions_[a] < positions_[b] : a < b; });
    return own;
  }

  float* output(int row, int head) const {
    return reinterpret_cast<float*>(static_cast<char*>(node_->data) + row * node_->nb[2] + head * node_->nb[1]);
  }
  std::vector<float> outputs() const {
    std::vector<float> all;
    for_each_output([&](const float* output) { all.insert(all.end(), output, output + shape_.value_dims); });
    return all;
  }
  void clear_output() {
    for_each_output([&](float* output) { std::fill_n(output, shape_.value_dims, -777.0F); });
  }

  // Makes a cell's keys and values NaN.
  void poison(int cell) {
    fill_nan(node_->src[1], cell);
    fill_nan(node_->src[2], cell);
  }

  int uniform(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

 private:
  void for_each_output(auto&& body) const {
    for (int row = 0; row < shape_.n_rows; ++row) {
      for (int head = 0; head < n_heads(); ++head) body(output(row, head));
    }
  }

  void place_cells() {
    const int n = shape_.n_cells;
    seq_of_.resize(n);
    positions_.resize(n);
    std::vector<int> lengths(shape_.n_seqs, 0);
    for (int cell = 0; cell < n; ++cell) {
      seq_of_[cell] = uniform(0, shape_.n_seqs - 1);
      positions_[cell] = lengths[seq_of_[cell]]++;
    }
    if (!shape_.shuffled) return;
    for (int i = n - 1; i > 0; --i) {  // swap whole cells: sequences keep their sets of positions
      const int other = uniform(0, i);
      std::swap(seq_of_[i], seq_of_[other]);
      std::swap(positions_[i], positions_[other]);
    }
  }

  // Rows are the last positions of each sequence, in order, shared out evenly.
  void make_mask() {
    const int n = shape_.n_cells;
    sees_.assign(static_cast<std::size_t>(shape_.n_rows) * n, false);
    for (int row = 0; row < shape_.n_rows; ++row) {
      const int seq = row * shape_.n_seqs / shape_.n_rows;
      const auto length = static_cast<int>(std::count(seq_of_.begin(), seq_of_.end(), seq));
      const int position = std::max(0, length - (rows_end(seq) - row));
      for (int cell = 0; cell < n; ++cell) {
        const bool causal = seq_of_[cell] == seq && positions_[cell] <= position &&
                            (shape_.window == 0 || positions_[cell] > position - shape_.window);
        sees_[row * n + cell] = shape_.random_mask ? uniform(0, 2) == 0 : causal;
      }
    }
  }
  // One more than the last row of a sequence.
  int rows_end(int seq) const {
    int row = 0;
    while (row < shape_.n_rows && row * shape_.n_seqs / shape_.n_rows <= seq) ++row;
    return row;
  }

  void make_node() {
    const TestShape& s = shape_;
    const std::size_t numbers = static_cast<std::size_t>(s.n_cells) * s.n_kv_heads * (s.key_dims + s.value_dims) +
                                static_cast<std::size_t>(s.n_rows) * n_heads() * (s.key_dims + s.value_dims) +
                                static_cast<std::size_t>(s.n_rows) * s.n_cells;
    context_ = ggml_init({.mem_size = numbers * 4 + (1 << 20), .mem_buffer = nullptr, .no_alloc = false});
    ggml_tensor* query = ggml_new_tensor_3d(context_, GGML_TYPE_F32, s.key_dims, n_heads(), s.n_rows);
    ggml_tensor* keys = ggml_new_tensor_3d(context_, s.key_type, s.key_dims, s.n_kv_heads, s.n_cells);
    ggml_tensor* values = ggml_new_tensor_3d(context_, s.value_type, s.value_dims, s.n_kv_heads, s.n_cells);
    ggml_tensor* mask = ggml_new_tensor_2d(context_, GGML_TYPE_F16, s.n_cells, s.n_rows);
    fill(query);
    fill(keys);
    fill(values);
    auto* bits = static_cast<ggml_fp16_t*>(mask->data);
    for (std::size_t i = 0; i < sees_.size(); ++i) {
      bits[i] = ggml_fp32_to_fp16(sees_[i] ? 0.0F : -std::numeric_limits<float>::infinity());
    }
    node_ = ggml_flash_attn_ext(context_, ggml_permute(context_, query, 0, 2, 1, 3),
                                ggml_permute(context_, keys, 0, 2, 1, 3), ggml_permute(context_, values, 0, 2, 1, 3),
                                mask, 2.0F / std::sqrt(static_cast<float>(s.key_dims)), 0.0F, 0.0F);
  }

  // Unit spread and roughly normal, up to 3.5: the sum of the four parts of a random word. Made without a library's
  // logarithm, so the same bits on every machine.
  float number() {
    constexpr float kMean = 131070.0F;
    constexpr float kSpread = 37837.0F;
    const std::uint64_t word = random_();
    const auto sum = (word & 0xFFFF) + (word >> 16 & 0xFFFF) + (word >> 32 & 0xFFFF) + (word >> 48);
    return (static_cast<float>(sum) - kMean) / kSpread;
  }

  void fill(ggml_tensor* tensor) {
    std::vector<float> numbers(ggml_nelements(tensor));
    for (float& each : numbers) each = number();
    if (tensor->type == GGML_TYPE_F32) {
      std::copy(numbers.begin(), numbers.end(), static_cast<float*>(tensor->data));
    } else {
      ggml_quantize_chunk(tensor->type, numbers.data(), tensor->data, 0, ggml_nelements(tensor) / tensor->ne[0],
                          tensor->ne[0], nullptr);
    }
  }

  static void fill_nan(ggml_tensor* rows, int cell) {
    for (int head = 0; head < rows->ne[2]; ++head) {
      // 0xFF bytes are NaN as f32, f16 and bf16, and as the scale of a q8_0 block.
      std::memset(static_cast<char*>(rows->data) + cell * rows->nb[1] + head * rows->nb[2], 0xFF,
                  ggml_row_size(rows->type, rows->ne[0]));
    }
  }
  void poison_unseen() {
    for (int cell = 0; cell < shape_.n_cells; ++cell) {
      if (!is_seen(cell)) poison(cell);
    }
  }

  TestShape shape_;
  std::mt19937_64 random_;
  std::vector<int> seq_of_;          // [n_cells]
  std::vector<Position> positions_;  // [n_cells]
  std::vector<bool> sees_;           // [n_rows][n_cells]
  ggml_context* context_ = nullptr;
  ggml_tensor* node_ = nullptr;
};

}  // namespace fermata::attention
