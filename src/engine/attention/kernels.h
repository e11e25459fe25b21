#pragma once

#include <cstdint>
#include <vector>

#include "engine/attention/operands.h"

// The arithmetic of attention, once per instruction set. All give the same bits, because every number is computed by
// the same operations in the same order, whatever shares its vector (scalar_twin.cc is that order, written plainly):
//
//   score(cell)  = fma chain over dims 0.. of key * (query * scale), from +0
//   weight(cell) = exp_of(score - largest score of the row)
//   total        = sum of weights in position order, from +0
//   out(dim)     = (fma chain over cells in position order of value * weight, from +0) * (1 / total)
namespace fermata::attention {

// Lone rows have few lanes to fill a vector with: their vectors hold cells (scores) and dimensions (sums) instead, and
// scores are padded to whole tiles.
inline constexpr int kTileCells = 64;
constexpr int padded_cells(int n_cells) { return (n_cells + kTileCells - 1) / kTileCells * kTileCells; }

struct Kernels {
  const char* name;
  int n_lanes_max;  // of attend_block
  int n_lanes_vector;

  // All of a block with up to n_lanes_max lanes.
  void (*attend_block)(const Block& block);

  // A block of one row, in two parts that several threads may share. Part one fills scores [n_heads][padded_cells] for
  // the cells [begin, end), begin a multiple of kTileCells, and -inf beyond n_cells; part two, when all scores are
  // there, writes the dimensions [dim_begin, dim_end), multiples of 16.
  void (*score_row)(const Block& block, int begin, int end, float* scores);
  void (*weigh_row)(const Block& block, const float* scores, int dim_begin, int dim_end);

  // Bit c of `bits` [(n + 63) / 64] tells whether mask[c] is 0. False if something is neither 0 nor -inf.
  bool (*mask_to_bits)(const std::uint16_t* mask, int n, std::uint64_t* bits);
};

// The whole of a block, by the part of the kernels that suits it.
void attend(const Kernels& kernels, const Block& block);

// Those that this build has and this CPU can run, best first.
std::vector<const Kernels*> usable_kernels();

}  // namespace fermata::attention
