#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "engine/engine.h"

struct ggml_tensor;

namespace fermata {

// Looks at the nodes of a running step: which cells libllama really writes (layer 0's SET_ROWS holds their indices),
// and, for tests, which cells each row's attention is let to see (the mask). It always answers "no" when asked whether
// it wants a node's data, which costs nothing measurable. Owner: the engine thread, which also runs the callbacks.
class StepWatch {
 public:
  // Before a step: where the books say that the rows will go, and the table of positions that attention sums by, with
  // those entries filled in. If libllama writes elsewhere, the table is put right before attention reads it.
  void begin(std::span<const CellIndex> predicted, std::span<const Row> rows, std::span<Position> table, bool masks);

  // The cells written, in row order; empty if no such node was met.
  std::span<const CellIndex> written() const { return written_; }
  // Per row, the cells its attention sees, ascending: [n_rows]; empty unless asked for, or without a mask.
  const std::vector<std::vector<CellIndex>>& seen() const { return seen_; }

  static bool on_node(ggml_tensor* node, bool ask, void* watch);

 private:
  void take_cells(const ggml_tensor* indices);
  void take_masks(const ggml_tensor* mask);

  std::span<const CellIndex> predicted_;
  std::span<const Row> rows_;
  std::span<Position> table_;
  bool wants_masks_ = false;
  std::vector<CellIndex> written_;
  std::vector<std::vector<CellIndex>> seen_;
};

}  // namespace fermata
