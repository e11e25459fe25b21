#include "engine/attention/cell_lists.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace fermata::attention {
namespace {

template <class Body>
void for_each_bit(std::uint64_t word, std::size_t at, Body&& body) {
  for (; word != 0; word &= word - 1) body(static_cast<std::uint32_t>(at * 64 + std::countr_zero(word)));
}

}  // namespace

bool CellLists::build(const Kernels& kernels, const MaskView& mask, std::span<const Position> positions) {
  cells_.clear();
  runs_.clear();
  blind_rows_.clear();
  own_.assign(mask.n_rows, {});
  row_bits_.resize((mask.n_cells + 63) / 64);
  for (int row = 0; row < mask.n_rows; ++row) {
    if (!kernels.mask_to_bits(mask.rows + row * mask.row_stride, mask.n_cells, row_bits_.data())) return false;
    const bool blind = std::all_of(row_bits_.begin(), row_bits_.end(), [](std::uint64_t word) { return word == 0; });
    if (blind) {
      blind_rows_.push_back(row);
      continue;
    }
    if (!extend_run(row, positions)) begin_run(row, positions);
    row_bits_.swap(last_row_bits_);
    row_bits_.resize(last_row_bits_.size());
  }
  return true;
}

bool CellLists::precedes(std::uint32_t a, std::uint32_t b, std::span<const Position> positions) const {
  if (positions.empty() || positions[a] == positions[b]) return a < b;
  return positions[a] < positions[b];
}

// Mostly they are in order already: a sequence's cells were given out one after the other.
void CellLists::sort(std::vector<std::uint32_t>& cells, std::span<const Position> positions) const {
  const auto before = [&](std::uint32_t a, std::uint32_t b) { return precedes(a, b, positions); };
  if (!std::is_sorted(cells.begin(), cells.end(), before)) std::sort(cells.begin(), cells.end(), before);
}

void CellLists::begin_run(int row, std::span<const Position> positions) {
  added_.clear();
  for (std::size_t i = 0; i < row_bits_.size(); ++i) {
    for_each_bit(row_bits_[i], i, [&](std::uint32_t cell) { added_.push_back(cell); });
  }
  if (!positions.empty()) FERMATA_CHECK_LT(*std::max_element(added_.begin(), added_.end()), positions.size());
  sort(added_, positions);
  const int n = static_cast<int>(added_.size());
  runs_.push_back({row, row + 1, cells_.size(), n});
  own_[row] = {0, n};
  cells_.insert(cells_.end(), added_.begin(), added_.end());
}

// The row joins the run if it differs from the row before by cells that left at the front of the list and cells that
// come after its end.
bool CellLists::extend_run(int row, std::span<const Position> positions) {
  if (runs_.empty() || runs_.back().row_end != row) return false;
  Run& run = runs_.back();
  const Interval last = own_[row - 1];
  const auto in_row = [&](std::uint32_t cell) { return ((row_bits_[cell / 64] >> (cell % 64)) & 1) != 0; };
  int n_left = 0;
  added_.clear();
  for (std::size_t i = 0; i < row_bits_.size(); ++i) {
    n_left += std::popcount(last_row_bits_[i] & ~row_bits_[i]);
    for_each_bit(row_bits_[i] & ~last_row_bits_[i], i, [&](std::uint32_t cell) { added_.push_back(cell); });
  }
  if (n_left >= last.end - last.begin || last.end != run.n_cells) return false;
  const std::uint32_t* list = cells_.data() + run.list_begin;
  for (int i = last.begin; i < last.begin + n_left; ++i) {
    if (in_row(list[i])) return false;
  }
  if (!positions.empty()) {
    for (const std::uint32_t cell : added_) FERMATA_CHECK_LT(cell, positions.size());
  }
  sort(added_, positions);
  if (!added_.empty() && !precedes(list[run.n_cells - 1], added_.front(), positions)) return false;
  cells_.insert(cells_.end(), added_.begin(), added_.end());
  run.n_cells += static_cast<int>(added_.size());
  run.row_end = row + 1;
  own_[row] = {last.begin + n_left, run.n_cells};
  return true;
}

}  // namespace fermata::attention
