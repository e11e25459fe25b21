#include "engine/llama/step_watch.h"

#include <cstring>
#include <string_view>

#include "ggml.h"

namespace fermata {
namespace {

// A node that writes into the pool: its destination is libllama's cache of layer keys or values.
bool writes_pool(const ggml_tensor* node) {
  const ggml_tensor* target = node->view_src != nullptr ? node->view_src : node->src[2];
  return target != nullptr && std::string_view(target->name).starts_with("cache_");
}

bool is_zero(const ggml_tensor* mask, const char* at) {
  if (mask->type == GGML_TYPE_F16) {
    ggml_fp16_t value;
    std::memcpy(&value, at, sizeof value);
    return ggml_fp16_to_fp32(value) == 0.0f;
  }
  float value;
  std::memcpy(&value, at, sizeof value);
  return value == 0.0f;
}

}  // namespace

void StepWatch::begin(std::span<const CellIndex> predicted, std::span<const Row> rows, std::span<Position> table,
                      bool masks) {
  predicted_ = predicted;
  rows_ = rows;
  table_ = table;
  wants_masks_ = masks;
  written_.clear();
  seen_.clear();
}

bool StepWatch::on_node(ggml_tensor* node, bool ask, void* user) {
  auto* watch = static_cast<StepWatch*>(user);
  if (!ask) return true;
  if (node->op == GGML_OP_SET_ROWS && watch->written_.empty() && writes_pool(node)) watch->take_cells(node->src[1]);
  if (node->op == GGML_OP_FLASH_ATTN_EXT && watch->wants_masks_ && watch->seen_.empty() && node->src[3] != nullptr)
    watch->take_masks(node->src[3]);
  return false;
}

void StepWatch::take_cells(const ggml_tensor* indices) {
  const auto n = static_cast<std::size_t>(ggml_nelements(indices));
  if (indices->data == nullptr || n != rows_.size()) return;  // reserving, or a cache of another shape
  for (std::size_t i = 0; i < n; ++i) {
    std::int64_t cell = 0;
    if (indices->type == GGML_TYPE_I64) {
      std::memcpy(&cell, static_cast<const char*>(indices->data) + i * sizeof cell, sizeof cell);
    } else {
      std::int32_t narrow = 0;
      std::memcpy(&narrow, static_cast<const char*>(indices->data) + i * sizeof narrow, sizeof narrow);
      cell = narrow;
    }
    if (cell < 0 || static_cast<std::size_t>(cell) >= table_.size()) {
      written_.clear();
      return;
    }
    written_.push_back(CellIndex{static_cast<std::uint32_t>(cell)});
  }
  if (std::equal(written_.begin(), written_.end(), predicted_.begin(), predicted_.end())) return;
  for (const CellIndex cell : predicted_) table_[raw(cell)] = KvLedger::kFree;
  for (std::size_t i = 0; i < n; ++i) table_[raw(written_[i])] = rows_[i].position;
}

void StepWatch::take_masks(const ggml_tensor* mask) {
  if (mask->data == nullptr || mask->ne[1] < static_cast<std::int64_t>(rows_.size())) return;
  seen_.resize(rows_.size());
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const char* row = static_cast<const char*>(mask->data) + i * mask->nb[1];
    for (std::int64_t cell = 0; cell < mask->ne[0]; ++cell)
      if (is_zero(mask, row + static_cast<std::size_t>(cell) * mask->nb[0]))
        seen_[i].push_back(CellIndex{static_cast<std::uint32_t>(cell)});
  }
}

}  // namespace fermata
