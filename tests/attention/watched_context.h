#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "engine/attention/attention.h"
#include "ggml.h"
#include "llama.h"

// A llama_context whose attention sums by position, for tests and benches that know no ledger: the table is learnt from
// the nodes that write keys, which tell the cells of the batch's rows before any attention of that batch runs.
namespace fermata::attention {

struct BatchRow {
  llama_token token = 0;
  llama_pos position = 0;
  llama_seq_id seq = 0;
};

struct ContextOptions {
  std::uint32_t n_cells = 2048;
  std::uint32_t n_rows_max = 512;
  int n_threads = 2;
  ggml_type key_type = GGML_TYPE_F16;
  ggml_type value_type = GGML_TYPE_F16;
  bool with_table = true;  // false: no table is bound, cells are summed in their own order
};

class WatchedContext {
 public:
  WatchedContext(llama_model* model, const ContextOptions& options)
      : positions_(options.n_cells, -1), n_vocab_(llama_vocab_n_tokens(llama_model_get_vocab(model))) {
    llama_context_params params = llama_context_default_params();
    params.n_ctx = options.n_cells;
    params.n_batch = params.n_ubatch = options.n_rows_max;
    params.n_seq_max = 16;
    params.n_threads = params.n_threads_batch = options.n_threads;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
    params.type_k = options.key_type;
    params.type_v = options.value_type;
    params.kv_unified = true;
    params.cb_eval = [](ggml_tensor* node, bool ask, void* self) {
      if (ask) static_cast<WatchedContext*>(self)->watch(node);
      return false;
    };
    params.cb_eval_user_data = this;
    const BindScope bind(options.with_table ? &table_ : nullptr);
    context_ = llama_init_from_model(model, params);
    FERMATA_CHECK(context_ != nullptr);
    batch_ = llama_batch_init(static_cast<std::int32_t>(options.n_rows_max), 0, 1);
  }
  ~WatchedContext() {
    llama_batch_free(batch_);
    llama_free(context_);
  }
  WatchedContext(const WatchedContext&) = delete;
  WatchedContext& operator=(const WatchedContext&) = delete;

  llama_context* raw() { return context_; }
  void clear() { llama_memory_clear(llama_get_memory(context_), false); }
  void remove(llama_seq_id seq) { llama_memory_seq_rm(llama_get_memory(context_), seq, -1, -1); }
  // The cell that the last row was written to.
  std::int64_t last_cell() const { return last_cell_; }

  // One ubatch. Logits of every row if all_logits, else of the last row of each call.
  int decode(std::span<const BatchRow> rows, bool all_logits = true) {
    rows_ = rows;
    learnt_ = false;
    batch_.n_tokens = 0;
    for (const BatchRow& row : rows) {
      const int i = batch_.n_tokens++;
      batch_.token[i] = row.token;
      batch_.pos[i] = row.position;
      batch_.n_seq_id[i] = 1;
      batch_.seq_id[i][0] = row.seq;
      batch_.logits[i] = all_logits || i + 1 == static_cast<int>(rows.size());
    }
    return llama_decode(context_, batch_);
  }
  std::span<const float> logits(int row) {
    return {llama_get_logits_ith(context_, row), static_cast<std::size_t>(n_vocab_)};
  }

 private:
  void watch(const ggml_tensor* node) {
    if (learnt_ || node->op != GGML_OP_SET_ROWS) return;
    learnt_ = true;
    const auto* cells = static_cast<const std::int64_t*>(node->src[1]->data);
    FERMATA_CHECK_EQ(node->src[1]->ne[0], static_cast<std::int64_t>(rows_.size()));
    for (std::size_t i = 0; i < rows_.size(); ++i) positions_[cells[i]] = rows_[i].position;
    last_cell_ = cells[rows_.size() - 1];
    table_.update(positions_);
  }

  std::vector<Position> positions_;
  PositionTable table_;
  int n_vocab_;
  llama_context* context_ = nullptr;
  llama_batch batch_{};
  std::span<const BatchRow> rows_;
  bool learnt_ = false;
  std::int64_t last_cell_ = -1;
};

}  // namespace fermata::attention
