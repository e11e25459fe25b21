#pragma once

#include <array>
#include <cstdint>

#include "engine/attention/attention.h"
#include "engine/attention/cell_lists.h"
#include "engine/attention/schedule.h"
#include "engine/attention/scratch.h"
#include "ggml-backend.h"

namespace fermata::attention {

// Whether this attention computes such a node. What it does not know is left to ggml: ALiBi, logit soft cap, sinks, no
// mask, a mask per head, several streams, other types and head sizes.
bool supports(const ggml_tensor* node);

// What computes the attention nodes of one context. Owner: the thread that decodes.
class NodeComputer {
 public:
  NodeComputer(const Kernels& kernels, const PositionTable* positions, int n_threads)
      : kernels_(kernels), positions_(positions), n_threads_(n_threads) {}

  void set_n_threads(int n) { n_threads_ = n; }
  void set_abort(ggml_abort_callback callback, void* data) {
    abort_ = callback;
    abort_data_ = data;
  }
  // Nodes with little work run on their caller alone unless this was called: tests would hardly see a second thread.
  void share_tiny_nodes() { share_tiny_ = true; }

  // Of a node that supports() accepts. GGML_STATUS_ALLOC_FAILED if memory ran out, on whichever thread.
  ggml_status compute(ggml_tensor* node);

 private:
  // Lists live as long as a ubatch; a model with sliding-window layers has two masks.
  struct CachedLists {
    std::uint64_t epoch = 0;  // of the position table; 0: nothing here
    const ggml_tensor* mask = nullptr;
    const void* data = nullptr;
    std::array<std::int64_t, 2> shape{};  // cells, rows
    CellLists lists;
  };

  const CellLists* lists_of(const ggml_tensor* mask, int n_rows);
  ggml_status compute_or_throw(ggml_tensor* node);
  ggml_status run_schedule();
  bool abort_raised() const { return abort_ != nullptr && abort_(abort_data_); }

  const Kernels& kernels_;
  const PositionTable* positions_;
  int n_threads_;
  ggml_abort_callback abort_ = nullptr;
  void* abort_data_ = nullptr;
  bool share_tiny_ = false;
  std::array<CachedLists, 2> cache_;
  std::size_t next_cached_ = 0;
  Schedule schedule_;
  ScratchArray split_scores_;
};

}  // namespace fermata::attention
