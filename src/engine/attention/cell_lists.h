#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "engine/attention/kernels.h"

namespace fermata::attention {

// A mask as ggml has it: f16 bits, 0 where row r sees cell c, -inf elsewhere, at rows + r * row_stride + c.
struct MaskView {
  const std::uint16_t* rows = nullptr;
  std::size_t row_stride = 0;  // in elements
  int n_rows = 0;
  int n_cells = 0;
};

// Which cells each row of a ubatch sums over, in position order. Derived from the mask once and used by all layers.
//
// Consecutive rows whose cells are intervals of one sorted list form a run and share it:
//
//   list of the run      c0 c1 c2 c3 c4 c5 c6          (cells by position)
//   row 0                [---------)                    causal rows: each sees one more
//   row 1                [------------)
//   row 2                   [------------)              a sliding window: the first one leaves
//
// Rows of other sequences, or with holes between, begin a run of their own. Rows that see nothing are in no run.
class CellLists {
 public:
  struct Run {
    int row_begin = 0;
    int row_end = 0;
    std::size_t list_begin = 0;  // into cells()
    int n_cells = 0;
  };

  // False if the mask holds anything but 0 and -inf. Without positions (empty) cells are in position order as they
  // are. Positions cover all cells that some row sees.
  bool build(const Kernels& kernels, const MaskView& mask, std::span<const Position> positions);

  const std::vector<Run>& runs() const { return runs_; }
  const std::uint32_t* cells(const Run& run) const { return cells_.data() + run.list_begin; }
  const Interval* own(const Run& run) const { return own_.data() + run.row_begin; }
  const std::vector<int>& blind_rows() const { return blind_rows_; }

 private:
  void begin_run(int row, std::span<const Position> positions);
  bool extend_run(int row, std::span<const Position> positions);
  bool precedes(std::uint32_t a, std::uint32_t b, std::span<const Position> positions) const;
  void sort(std::vector<std::uint32_t>& cells, std::span<const Position> positions) const;

  std::vector<std::uint32_t> cells_;  // the lists of all runs, one after the other
  std::vector<Run> runs_;
  std::vector<Interval> own_;  // [n_rows], relative to the row's run
  std::vector<int> blind_rows_;
  std::vector<std::uint64_t> row_bits_;       // of the row in hand
  std::vector<std::uint64_t> last_row_bits_;  // of the run's last row
  std::vector<std::uint32_t> added_;
};

}  // namespace fermata::attention
