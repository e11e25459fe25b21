#include "engine/attention/node.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <optional>

#include "base/check.h"
#include "base/worker_team.h"

namespace fermata::attention {
namespace {

constexpr int kDimsMax = 1024;

std::optional<KvType> kv_type_of(ggml_type type) {
  switch (type) {
    case GGML_TYPE_F32: return KvType::kF32;
    case GGML_TYPE_F16: return KvType::kF16;
    case GGML_TYPE_BF16: return KvType::kBf16;
    case GGML_TYPE_Q8_0: return KvType::kQ8_0;
    default: return std::nullopt;
  }
}

float parameter(const ggml_tensor* node, int index) {
  float value = 0;
  std::memcpy(&value, node->op_params + index, sizeof(value));
  return value;
}

bool supports_rows(const ggml_tensor* rows) {
  return rows != nullptr && kv_type_of(rows->type).has_value() && rows->ne[0] % 16 == 0 && rows->ne[0] <= kDimsMax &&
         rows->ne[0] % ggml_blck_size(rows->type) == 0 && rows->nb[0] == ggml_type_size(rows->type) && rows->ne[3] == 1;
}

KvRows rows_of(const ggml_tensor* tensor) {
  return {.data = static_cast<const std::byte*>(tensor->data),
          .cell_bytes = tensor->nb[1],
          .head_bytes = tensor->nb[2],
          .type = *kv_type_of(tensor->type),
          .dims = static_cast<int>(tensor->ne[0])};
}

Operands operands_of(ggml_tensor* node) {
  const ggml_tensor* query = node->src[0];  // [key dims, rows, heads]
  return {.query = static_cast<const float*>(query->data),
          .query_row = query->nb[1] / sizeof(float),
          .query_head = query->nb[2] / sizeof(float),
          .keys = rows_of(node->src[1]),
          .values = rows_of(node->src[2]),
          .out = static_cast<float*>(node->data),  // [value dims, heads, rows]
          .out_row = node->nb[2] / sizeof(float),
          .out_head = node->nb[1] / sizeof(float),
          .n_rows = static_cast<int>(query->ne[1]),
          .n_heads = static_cast<int>(query->ne[2]),
          .n_kv_heads = static_cast<int>(node->src[1]->ne[2]),
          .scale = parameter(node, 0)};
}

MaskView mask_of(const ggml_tensor* mask, int n_rows) {
  return {.rows = static_cast<const std::uint16_t*>(mask->data),
          .row_stride = mask->nb[1] / sizeof(std::uint16_t),
          .n_rows = n_rows,
          .n_cells = static_cast<int>(mask->ne[0])};
}

}  // namespace

bool supports(const ggml_tensor* node) {
  const ggml_tensor* query = node->src[0];
  const ggml_tensor* keys = node->src[1];
  const ggml_tensor* values = node->src[2];
  const ggml_tensor* mask = node->src[3];
  const ggml_tensor* sinks = node->src[4];
  const bool variant = sinks == nullptr && parameter(node, 1) == 0.0F && parameter(node, 2) == 0.0F;
  if (!variant || mask == nullptr || query == nullptr || !supports_rows(keys) || !supports_rows(values)) return false;
  return query->type == GGML_TYPE_F32 && query->nb[0] == sizeof(float) && query->ne[0] == keys->ne[0] &&
         query->ne[3] == 1 && keys->ne[1] == values->ne[1] && keys->ne[2] == values->ne[2] &&
         query->ne[2] % keys->ne[2] == 0 && mask->type == GGML_TYPE_F16 && mask->nb[0] == sizeof(std::uint16_t) &&
         mask->ne[0] == keys->ne[1] && mask->ne[1] >= query->ne[1] && mask->ne[2] == 1 && mask->ne[3] == 1 &&
         node->type == GGML_TYPE_F32 && node->nb[0] == sizeof(float);
}

ggml_status NodeComputer::compute(ggml_tensor* node) {
  try {
    return compute_or_throw(node);
  } catch (const std::bad_alloc&) {  // our caller is C
    return GGML_STATUS_ALLOC_FAILED;
  }
}

ggml_status NodeComputer::compute_or_throw(ggml_tensor* node) {
  const Operands operands = operands_of(node);
  const CellLists* lists = lists_of(node->src[3], operands.n_rows);
  if (lists == nullptr) return GGML_STATUS_FAILED;
  for (const int row : lists->blind_rows()) {
    for (int head = 0; head < operands.n_heads; ++head) {
      std::fill_n(operands.out + row * operands.out_row + head * operands.out_head, operands.values.dims, 0.0F);
    }
  }
  schedule_.cut(kernels_, operands, *lists, n_threads_);
  return run_schedule();
}

// Null if the mask is of a kind that this attention does not know.
const CellLists* NodeComputer::lists_of(const ggml_tensor* mask, int n_rows) {
  const std::uint64_t epoch = positions_ == nullptr ? 0 : positions_->epoch();
  const std::array<std::int64_t, 2> shape{mask->ne[0], n_rows};
  for (CachedLists& cached : cache_) {
    if (epoch != 0 && cached.epoch == epoch && cached.mask == mask && cached.data == mask->data &&
        cached.shape == shape) {
      return &cached.lists;
    }
  }
  CachedLists& cached = cache_[next_cached_];
  next_cached_ = (next_cached_ + 1) % cache_.size();
  cached.epoch = 0;
  const auto positions = epoch == 0 ? std::span<const Position>{} : positions_->cells();
  if (!cached.lists.build(kernels_, mask_of(mask, n_rows), positions)) return nullptr;
  cached.epoch = epoch;
  cached.mask = mask;
  cached.data = mask->data;
  cached.shape = shape;
  return &cached.lists;
}

// A body of a region must not throw, and every member must come to the barrier: what ends the work early is noted.
ggml_status NodeComputer::run_schedule() {
  const std::vector<Block>& blocks = schedule_.blocks();
  std::atomic<ggml_status> status{GGML_STATUS_SUCCESS};
  std::atomic<int> next_piece{0};
  std::atomic<int> next_sum{0};
  const auto each = [&](std::atomic<int>& next, std::size_t n, const auto& body) {
    for (;;) {
      const auto i = static_cast<std::size_t>(next.fetch_add(1, std::memory_order_relaxed));
      if (i >= n || status.load(std::memory_order_relaxed) != GGML_STATUS_SUCCESS) return;
      if (abort_raised()) return status.store(GGML_STATUS_ABORTED, std::memory_order_relaxed);
      try {
        body(i);
      } catch (const std::bad_alloc&) {  // of a thread's scratch
        return status.store(GGML_STATUS_ALLOC_FAILED, std::memory_order_relaxed);
      }
    }
  };
  float* split_scores = schedule_.is_split() ? split_scores_.at_least(schedule_.n_scores()) : nullptr;
  const auto attend_split = [&](int, int) {
    each(next_piece, schedule_.score_parts().size(), [&](std::size_t i) {
      const Schedule::Part& part = schedule_.score_parts()[i];
      kernels_.score_row(blocks[part.block], part.begin, part.end, split_scores + schedule_.scores_begin(part.block));
    });
    WorkerTeam::barrier();
    each(next_sum, schedule_.sum_parts().size(), [&](std::size_t i) {
      const Schedule::Part& part = schedule_.sum_parts()[i];
      kernels_.weigh_row(blocks[part.block], split_scores + schedule_.scores_begin(part.block), part.begin, part.end);
    });
  };
  const auto attend_blocks = [&](int, int) {
    each(next_piece, blocks.size(), [&](std::size_t i) { attend(kernels_, blocks[i]); });
  };
  WorkerTeam& team = WorkerTeam::process();
  const int n_wanted = !share_tiny_ && schedule_.is_tiny(team.is_crowded()) ? 1 : n_threads_;
  if (schedule_.is_split()) {
    team.run(n_wanted, attend_split);
  } else {
    team.run(std::min(n_wanted, static_cast<int>(blocks.size())), attend_blocks);
  }
  return status.load(std::memory_order_relaxed);
}

}  // namespace fermata::attention
