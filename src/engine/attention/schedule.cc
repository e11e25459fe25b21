#include "engine/attention/schedule.h"

#include <algorithm>
#include <numeric>

#include "engine/attention/scratch.h"

namespace fermata::attention {
namespace {

constexpr int kLoneRowsMax = 4;      // runs of so few rows are computed row by row: their lanes would be empty
constexpr int kPiecesPerThread = 4;  // so that the last piece is a small part of the whole
constexpr int kSplitCellsMin = 256;  // lone rows with fewer cells are not worth a barrier
constexpr int kSumDims = 16;         // the least that a part sums

int round_up(int n, int step) { return (n + step - 1) / step * step; }

}  // namespace

void Schedule::cut(const Kernels& kernels, const Operands& operands, const CellLists& lists, int n_threads) {
  blocks_.clear();
  score_parts_.clear();
  sum_parts_.clear();
  n_lane_cells_ = 0;
  own_.resize(operands.n_rows);
  for (const CellLists::Run& run : lists.runs()) cut_run(kernels, operands, lists, run, n_threads);
  for (const Block& block : blocks_) n_lane_cells_ += static_cast<std::size_t>(block.n_lanes()) * block.n_cells;

  const bool all_lone = std::all_of(blocks_.begin(), blocks_.end(), [](const Block& b) { return b.n_rows == 1; });
  const int n_blocks = static_cast<int>(blocks_.size());
  if (n_threads > 1 && all_lone && n_blocks > 0 && n_blocks < kPiecesPerThread * n_threads &&
      blocks_.front().n_cells >= kSplitCellsMin) {
    split(operands, n_threads);
    return;
  }
  std::stable_sort(blocks_.begin(), blocks_.end(),
                   [](const Block& a, const Block& b) { return a.n_cells * a.n_lanes() > b.n_cells * b.n_lanes(); });
}

void Schedule::cut_run(const Kernels& kernels, const Operands& operands, const CellLists& lists,
                       const CellLists::Run& run, int n_threads) {
  const int group = operands.group();
  const int n_rows = run.row_end - run.row_begin;
  if (n_rows <= kLoneRowsMax) {
    for (int row = run.row_begin; row < run.row_end; ++row) add_blocks(operands, lists, run, row, 1, group);
    return;
  }
  // Wide blocks read the pool less often; narrower ones if threads would be idle, or scores take too much memory.
  int n_lanes = kernels.n_lanes_max;
  const auto n_pieces = [&] { return (n_rows * group + n_lanes - 1) / n_lanes * operands.n_kv_heads; };
  const auto too_many_scores = [&] {
    return static_cast<std::size_t>(run.n_cells) * static_cast<std::size_t>(n_lanes) > Scratch::kScoresMax;
  };
  while (n_lanes > kernels.n_lanes_vector && (n_pieces() < 2 * n_threads || too_many_scores())) {
    n_lanes -= kernels.n_lanes_vector;
  }
  const int n_heads = std::min(group, n_lanes);
  const int n_block_rows = n_lanes / n_heads;
  for (int row = run.row_begin; row < run.row_end; row += n_block_rows) {
    add_blocks(operands, lists, run, row, std::min(n_block_rows, run.row_end - row), n_heads);
  }
}

// The blocks of rows [row_begin, row_begin + n_rows): one for each group of heads and, if a group has more than
// n_heads, for each part of it.
void Schedule::add_blocks(const Operands& operands, const CellLists& lists, const CellLists::Run& run, int row_begin,
                          int n_rows, int n_heads) {
  const Interval* own = lists.own(run) + (row_begin - run.row_begin);
  const int begin = own[0].begin;  // both ends of the intervals only grow within a run
  const int end = own[n_rows - 1].end;
  for (int i = 0; i < n_rows; ++i) own_[row_begin + i] = {own[i].begin - begin, own[i].end - begin};
  Block block{.operands = &operands,
              .cells = lists.cells(run) + begin,
              .n_cells = end - begin,
              .own = own_.data() + row_begin,
              .row_begin = row_begin,
              .n_rows = n_rows};
  const int group = operands.group();
  for (block.kv_head = 0; block.kv_head < operands.n_kv_heads; ++block.kv_head) {
    for (int head = 0; head < group; head += n_heads) {
      block.head_begin = block.kv_head * group + head;
      block.n_heads = std::min(n_heads, group - head);
      blocks_.push_back(block);
    }
  }
}

void Schedule::split(const Operands& operands, int n_threads) {
  scores_begin_.assign(1, 0);
  const int n_cells = std::accumulate(blocks_.begin(), blocks_.end(), 0,
                                      [](int sum, const Block& block) { return sum + block.n_cells; });
  const int part_cells = round_up(std::max(1, n_cells / (kPiecesPerThread * n_threads)), kTileCells);
  const int n_blocks = static_cast<int>(blocks_.size());

  const int dims = operands.values.dims;
  int n_slices = 1;
  while (n_blocks * n_slices % n_threads != 0 && n_blocks * n_slices < kPiecesPerThread * n_threads &&
         dims / (n_slices + 1) >= kSumDims) {
    ++n_slices;
  }
  const int part_dims = round_up((dims + n_slices - 1) / n_slices, kSumDims);

  for (int b = 0; b < n_blocks; ++b) {
    const Block& block = blocks_[b];
    const auto padded = static_cast<std::size_t>(padded_cells(block.n_cells));
    scores_begin_.push_back(scores_begin_.back() + static_cast<std::size_t>(block.n_heads) * padded);
    for (int c = 0; c < block.n_cells; c += part_cells) {
      score_parts_.push_back({b, c, std::min(block.n_cells, c + part_cells)});
    }
    for (int dim = 0; dim < dims; dim += part_dims) sum_parts_.push_back({b, dim, std::min(dims, dim + part_dims)});
  }
}

}  // namespace fermata::attention
