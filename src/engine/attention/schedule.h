#pragma once

#include <vector>

#include "engine/attention/cell_lists.h"
#include "engine/attention/kernels.h"

namespace fermata::attention {

// One node's work, cut into pieces that threads take one by one. How it is cut changes no bit of the result.
class Schedule {
 public:
  // A piece of a lone row's work: of its scores (cells [begin, end)) or of its sums (dimensions [begin, end)).
  struct Part {
    int block = 0;
    int begin = 0;
    int end = 0;
  };

  // Keeps pointers into operands and lists. The heaviest pieces come first.
  void cut(const Kernels& kernels, const Operands& operands, const CellLists& lists, int n_threads);

  const std::vector<Block>& blocks() const { return blocks_; }

  // Too few lone rows to keep all threads busy: their scores are shared out first (score_parts), and when all are there
  // their sums (sum_parts). Else both are empty and each block is one piece.
  bool is_split() const { return !score_parts_.empty(); }
  const std::vector<Part>& score_parts() const { return score_parts_; }
  const std::vector<Part>& sum_parts() const { return sum_parts_; }
  // Where the scores of a block of a split schedule begin, and how many floats all need.
  std::size_t scores_begin(int block) const { return scores_begin_[block]; }
  std::size_t n_scores() const { return scores_begin_.back(); }

  // Too little work to wake anybody for: some microseconds, or some hundred when the cores are crowded.
  bool is_tiny(bool crowded) const { return n_lane_cells_ < (crowded ? kTinyLaneCellsCrowded : kTinyLaneCells); }

 private:
  static constexpr std::size_t kTinyLaneCells = 1024;
  static constexpr std::size_t kTinyLaneCellsCrowded = 64 * 1024;

  void cut_run(const Kernels& kernels, const Operands& operands, const CellLists& lists, const CellLists::Run& run,
               int n_threads);
  void add_blocks(const Operands& operands, const CellLists& lists, const CellLists::Run& run, int row_begin,
                  int n_rows, int n_heads);
  void split(const Operands& operands, int n_threads);

  std::vector<Block> blocks_;
  std::vector<Interval> own_;  // [n_rows], relative to the row's block
  std::vector<Part> score_parts_;
  std::vector<Part> sum_parts_;
  std::vector<std::size_t> scores_begin_;  // [n_blocks + 1]
  std::size_t n_lane_cells_ = 0;
};

}  // namespace fermata::attention
