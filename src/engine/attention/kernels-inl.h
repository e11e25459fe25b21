// The kernels of one instruction set; included by kernels.cc once for each.
#if defined(FERMATA_ATTENTION_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FERMATA_ATTENTION_KERNELS_INL_H_
#undef FERMATA_ATTENTION_KERNELS_INL_H_
#else
#define FERMATA_ATTENTION_KERNELS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace fermata::attention::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;
using V = hn::Vec<F>;
constexpr int kN = HWY_LANES(float);
constexpr F kF{};

// How much is summed at once so that fused multiply-adds hide their latency and their registers suffice.
#if HWY_TARGET == HWY_AVX2
constexpr bool kManyRegisters = false;  // 16
#else
constexpr bool kManyRegisters = true;  // 32
#endif
constexpr int kLaneVectorsMax = 3;                   // of attend_block
constexpr int kBlockSteps = kManyRegisters ? 8 : 4;  // cells, or dimensions, by kLaneVectorsMax vectors of lanes
constexpr int kRowVectors = kManyRegisters ? 4 : 2;  // vectors of cells, or of dimensions, by kRowHeadsMax heads
constexpr int kRowHeadsMax = 4;
constexpr int kPrefetchCells = 16;  // how far ahead of the sum the pool is fetched

// --- numbers of the pool

template <KvType kType>
HWY_INLINE V load_numbers(const std::byte* row, int dim) {
  if constexpr (kType == KvType::kF32) {
    return hn::LoadU(kF, reinterpret_cast<const float*>(row) + dim);
  } else if constexpr (kType == KvType::kF16) {
    const hn::Rebind<hwy::float16_t, F> half;
    return hn::PromoteTo(kF, hn::LoadU(half, reinterpret_cast<const hwy::float16_t*>(row) + dim));
  } else if constexpr (kType == KvType::kBf16) {
    const hn::Rebind<hwy::bfloat16_t, F> half;
    return hn::PromoteTo(kF, hn::LoadU(half, reinterpret_cast<const hwy::bfloat16_t*>(row) + dim));
  } else {
    // Blocks of 34 bytes: an f16 scale, then 32 int8.
    const std::byte* block = row + dim / 32 * 34;
    const hn::FixedTag<float, 4> four;
    const hn::Rebind<hwy::float16_t, hn::FixedTag<float, 4>> four_halves;
    const float scale =
        hn::GetLane(hn::PromoteTo(four, hn::LoadU(four_halves, reinterpret_cast<const hwy::float16_t*>(block))));
    const hn::Rebind<std::int8_t, F> bytes;
    const hn::Rebind<std::int32_t, F> integers;
    const auto q = hn::LoadU(bytes, reinterpret_cast<const std::int8_t*>(block) + 2 + dim % 32);
    return hn::Mul(hn::ConvertTo(kF, hn::PromoteTo(integers, q)), hn::Set(kF, scale));
  }
}

template <KvType kType>
HWY_INLINE void convert_row(const std::byte* row, int dims, float* to) {
  for (int dim = 0; dim < dims; dim += kN) hn::StoreU(load_numbers<kType>(row, dim), kF, to + dim);
}

// Calls body.template operator()<type>().
template <class Body>
HWY_INLINE void with_type(KvType type, Body&& body) {
  switch (type) {
    case KvType::kF32: return body.template operator()<KvType::kF32>();
    case KvType::kF16: return body.template operator()<KvType::kF16>();
    case KvType::kBf16: return body.template operator()<KvType::kBf16>();
    case KvType::kQ8_0: return body.template operator()<KvType::kQ8_0>();
  }
}

HWY_INLINE const std::byte* row_of(const KvRows& rows, int kv_head, std::uint32_t cell) {
  return rows.data + cell * rows.cell_bytes + kv_head * rows.head_bytes;
}

template <KvType kType>
HWY_INLINE void prefetch_row(const KvRows& rows, int kv_head, std::uint32_t cell) {
  constexpr int kBytesOf32 = kType == KvType::kF32 ? 128 : kType == KvType::kQ8_0 ? 34 : 64;
  const std::byte* row = row_of(rows, kv_head, cell);
  const int n_bytes = rows.dims * kBytesOf32 / 32;
  for (int at = 0; at < n_bytes; at += 64) hwy::Prefetch(row + at);
}

// to [n_cells][dims]; n_ahead cells from `cells` may be fetched.
void convert_cells(const KvRows& rows, int kv_head, const std::uint32_t* cells, int n_cells, int n_ahead, float* to) {
  with_type(rows.type, [&]<KvType kType>() {
    for (int i = 0; i < n_cells; ++i) {
      if (i + kPrefetchCells < n_ahead) prefetch_row<kType>(rows, kv_head, cells[i + kPrefetchCells]);
      convert_row<kType>(row_of(rows, kv_head, cells[i]), rows.dims, to + i * rows.dims);
    }
  });
}

// to[dim * stride + i] = from[i][dim], i < 4; dims a multiple of 4.
HWY_INLINE void transpose_four(const float* const from[4], int dims, float* to, int stride) {
  const hn::FixedTag<float, 4> d;
  for (int dim = 0; dim < dims; dim += 4) {
    const auto a = hn::LoadU(d, from[0] + dim);
    const auto b = hn::LoadU(d, from[1] + dim);
    const auto c = hn::LoadU(d, from[2] + dim);
    const auto e = hn::LoadU(d, from[3] + dim);
    const auto low_ab = hn::InterleaveLower(d, a, b);
    const auto low_ce = hn::InterleaveLower(d, c, e);
    const auto up_ab = hn::InterleaveUpper(d, a, b);
    const auto up_ce = hn::InterleaveUpper(d, c, e);
    hn::StoreU(hn::ConcatLowerLower(d, low_ce, low_ab), d, to + (dim + 0) * stride);
    hn::StoreU(hn::ConcatUpperUpper(d, low_ce, low_ab), d, to + (dim + 1) * stride);
    hn::StoreU(hn::ConcatLowerLower(d, up_ce, up_ab), d, to + (dim + 2) * stride);
    hn::StoreU(hn::ConcatUpperUpper(d, up_ce, up_ab), d, to + (dim + 3) * stride);
  }
}

// exp(x) for x <= 0, relative error below 2e-7; 0 below -86, so that no intermediate is subnormal; NaN stays NaN.
// 2^n * (1 + r + r^2 * polynomial(r)), n the integer nearest to x / ln 2 (Cephes' expf).
HWY_INLINE V exp_of(V x) {
  const hn::RebindToSigned<F> integers;
  const V magic = hn::Set(kF, 12582912.0F);  // 1.5 * 2^23: adding it leaves n in the low bits
  const V shifted = hn::MulAdd(x, hn::Set(kF, 1.44269504F), magic);
  const V n = hn::Sub(shifted, magic);
  V r = hn::NegMulAdd(n, hn::Set(kF, 0.693359375F), x);
  r = hn::NegMulAdd(n, hn::Set(kF, -2.12194440e-4F), r);
  V p = hn::Set(kF, 1.9875691500e-4F);
  p = hn::MulAdd(p, r, hn::Set(kF, 1.3981999507e-3F));
  p = hn::MulAdd(p, r, hn::Set(kF, 8.3334519073e-3F));
  p = hn::MulAdd(p, r, hn::Set(kF, 4.1665795894e-2F));
  p = hn::MulAdd(p, r, hn::Set(kF, 1.6666665459e-1F));
  p = hn::MulAdd(p, r, hn::Set(kF, 5.0000001201e-1F));
  p = hn::MulAdd(hn::Mul(r, r), p, hn::Add(r, hn::Set(kF, 1.0F)));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(integers, shifted));
  const V scaled = hn::BitCast(kF, hn::Add(hn::BitCast(integers, p), exponent));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(kF, -86.0F)), scaled);
}

// --- a block of many lanes: a vector holds lanes

// The part of a block's cells that is every lane's own; before and after it lanes are masked cell by cell, because a
// cell that is not a lane's own must not touch its sums, whatever it holds.
struct LaneLimits {
  alignas(64) std::int32_t begin[kLaneVectorsMax * kN];
  alignas(64) std::int32_t end[kLaneVectorsMax * kN];
  int all_begin = 0;
  int all_end = 0;

  LaneLimits(const Block& block, int width) {
    all_end = block.n_cells;
    for (int row = 0; row < block.n_rows; ++row) {
      all_begin = std::max(all_begin, block.own[row].begin);
      all_end = std::min(all_end, block.own[row].end);
    }
    for (int lane = 0; lane < width; ++lane) {
      const Interval& own = block.own[std::min(lane / block.n_heads, block.n_rows - 1)];
      begin[lane] = own.begin;
      end[lane] = own.end;
    }
    all_end = std::max(all_end, all_begin);  // rows without a common cell: the two masked parts meet
  }

  // Lanes of vector z that own the cell.
  HWY_INLINE hn::Mask<F> owners(int z, int cell) const {
    const hn::RebindToSigned<F> integers;
    const auto at = hn::Set(integers, cell);
    const auto from = hn::Not(hn::Lt(at, hn::Load(integers, begin + z * kN)));
    const auto to = hn::Lt(at, hn::Load(integers, end + z * kN));
    return hn::RebindMask(kF, hn::And(from, to));
  }
};

// queries [key dims][width], scaled; lanes that do not exist are 0.
void gather_queries(const Block& block, int width, float* queries) {
  const int dims = block.operands->keys.dims;
  const V scale = hn::Set(kF, block.operands->scale);
  float* rows = thread_scratch().rows.at_least(4 * static_cast<std::size_t>(dims));
  for (int lane = 0; lane < width; lane += 4) {
    const float* from[4];
    for (int i = 0; i < 4; ++i) {
      float* row = rows + i * dims;
      const int at = lane + i;
      const bool exists = at < block.n_lanes();
      const float* query = exists ? block.query(at / block.n_heads, at % block.n_heads) : nullptr;
      for (int dim = 0; dim < dims; dim += kN) {
        hn::StoreU(exists ? hn::Mul(hn::LoadU(kF, query + dim), scale) : hn::Zero(kF), kF, row + dim);
      }
      from[i] = row;
    }
    transpose_four(from, dims, queries + lane, width);
  }
}

// sums [value dims][width] to the rows of the output, times 1 / total.
void scatter_output(const Block& block, int width, float* sums, const V* totals) {
  const int dims = block.operands->values.dims;
  for (int z = 0; z * kN < width; ++z) {
    const V factor = hn::Div(hn::Set(kF, 1.0F), totals[z]);
    for (int dim = 0; dim < dims; ++dim) {
      float* at = sums + dim * width + z * kN;
      hn::StoreU(hn::Mul(hn::LoadU(kF, at), factor), kF, at);
    }
  }
  float* nowhere = thread_scratch().rows.at_least(4 * static_cast<std::size_t>(dims));
  for (int lane = 0; lane < block.n_lanes(); lane += 4) {
    float* to[4];
    for (int i = 0; i < 4; ++i) {
      const int at = lane + i;
      to[i] = at < block.n_lanes() ? block.out(at / block.n_heads, at % block.n_heads) : nowhere;
    }
    for (int dim = 0; dim < dims; dim += 4) {
      const float* from[4];
      for (int i = 0; i < 4; ++i) from[i] = sums + (dim + i) * width + lane;
      alignas(16) float square[16];
      transpose_four(from, 4, square, 4);
      for (int i = 0; i < 4; ++i) std::memcpy(to[i] + dim, square + 4 * i, 4 * sizeof(float));
    }
  }
}

template <int kVectors>
constexpr int steps() {
  return kVectors == kLaneVectorsMax ? kBlockSteps : (kVectors == 2 ? kBlockSteps : 8);
}

// scores [kCells][width] of cells `at`.. of the block, whose converted keys are keys [kCells][dims].
template <int kVectors, int kCells>
HWY_INLINE void score_cells(const float* keys, const float* queries, int dims, const LaneLimits& limits, int at,
                            V* largest, float* scores) {
  constexpr int kWidth = kVectors * kN;
  V sums[kCells][kVectors];
#pragma GCC unroll 8
  for (int c = 0; c < kCells; ++c) {
#pragma GCC unroll 3
    for (int z = 0; z < kVectors; ++z) sums[c][z] = hn::Zero(kF);
  }
  for (int dim = 0; dim < dims; ++dim) {
    V query[kVectors];
#pragma GCC unroll 3
    for (int z = 0; z < kVectors; ++z) query[z] = hn::LoadU(kF, queries + dim * kWidth + z * kN);
#pragma GCC unroll 8
    for (int c = 0; c < kCells; ++c) {
      const V key = hn::Set(kF, keys[c * dims + dim]);
#pragma GCC unroll 3
      for (int z = 0; z < kVectors; ++z) sums[c][z] = hn::MulAdd(key, query[z], sums[c][z]);
    }
  }
  const bool all = at >= limits.all_begin && at + kCells <= limits.all_end;
  const V none = hn::Set(kF, -std::numeric_limits<float>::infinity());
#pragma GCC unroll 8
  for (int c = 0; c < kCells; ++c) {
#pragma GCC unroll 3
    for (int z = 0; z < kVectors; ++z) {
      const V score = all ? sums[c][z] : hn::IfThenElse(limits.owners(z, at + c), sums[c][z], none);
      largest[z] = hn::Max(largest[z], score);
      hn::StoreU(score, kF, scores + c * kWidth + z * kN);
    }
  }
}

// sums[kDims][width] += values of the cells [0, n) times their weights; values [n][dims] from the dimension wanted.
template <int kVectors, int kDims, bool kMasked>
HWY_INLINE void weigh_cells(const float* values, int dims, const float* weights, int n, const LaneLimits& limits,
                            int at, float* sums_io) {
  constexpr int kWidth = kVectors * kN;
  V sums[kDims][kVectors];
#pragma GCC unroll 8
  for (int x = 0; x < kDims; ++x) {
#pragma GCC unroll 3
    for (int z = 0; z < kVectors; ++z) sums[x][z] = hn::LoadU(kF, sums_io + x * kWidth + z * kN);
  }
  for (int c = 0; c < n; ++c) {
    V weight[kVectors];
#pragma GCC unroll 3
    for (int z = 0; z < kVectors; ++z) weight[z] = hn::LoadU(kF, weights + c * kWidth + z * kN);
#pragma GCC unroll 8
    for (int x = 0; x < kDims; ++x) {
      const V value = hn::Set(kF, values[c * dims + x]);
#pragma GCC unroll 3
      for (int z = 0; z < kVectors; ++z) {
        const V sum = hn::MulAdd(value, weight[z], sums[x][z]);
        sums[x][z] = kMasked ? hn::IfThenElse(limits.owners(z, at + c), sum, sums[x][z]) : sum;
      }
    }
  }
#pragma GCC unroll 8
  for (int x = 0; x < kDims; ++x) {
#pragma GCC unroll 3
    for (int z = 0; z < kVectors; ++z) hn::StoreU(sums[x][z], kF, sums_io + x * kWidth + z * kN);
  }
}

template <int kVectors>
void score_block(const Block& block, const LaneLimits& limits, const float* queries, V* largest, float* scores) {
  constexpr int kWidth = kVectors * kN;
  constexpr int kCells = steps<kVectors>();
  const int dims = block.operands->keys.dims;
  float* keys = thread_scratch().tile.at_least(static_cast<std::size_t>(kTileCells) * dims);
  for (int tile = 0; tile < block.n_cells; tile += kTileCells) {
    const int n = std::min(kTileCells, block.n_cells - tile);
    convert_cells(block.operands->keys, block.kv_head, block.cells + tile, n, block.n_cells - tile, keys);
    int c = 0;
    for (; c + kCells <= n; c += kCells) {
      score_cells<kVectors, kCells>(keys + c * dims, queries, dims, limits, tile + c, largest,
                                    scores + static_cast<std::size_t>(tile + c) * kWidth);
    }
    for (; c < n; ++c) {
      score_cells<kVectors, 1>(keys + c * dims, queries, dims, limits, tile + c, largest,
                               scores + static_cast<std::size_t>(tile + c) * kWidth);
    }
  }
}

// Scores become weights; what they sum to.
template <int kVectors>
void weights_of_block(int n_cells, const V* largest, float* scores, V* totals) {
  constexpr int kWidth = kVectors * kN;
  V sums[kVectors];
  V top[kVectors];
#pragma GCC unroll 3
  for (int z = 0; z < kVectors; ++z) {
    sums[z] = hn::Zero(kF);
    top[z] = largest[z];
  }
  for (int c = 0; c < n_cells; ++c) {
#pragma GCC unroll 3
    for (int z = 0; z < kVectors; ++z) {
      float* at = scores + static_cast<std::size_t>(c) * kWidth + z * kN;
      const V weight = exp_of(hn::Sub(hn::LoadU(kF, at), top[z]));
      sums[z] = hn::Add(sums[z], weight);
      hn::StoreU(weight, kF, at);
    }
  }
#pragma GCC unroll 3
  for (int z = 0; z < kVectors; ++z) totals[z] = sums[z];
}

template <int kVectors>
void weigh_block(const Block& block, const LaneLimits& limits, const float* weights, float* sums) {
  constexpr int kWidth = kVectors * kN;
  constexpr int kDims = steps<kVectors>();
  const int dims = block.operands->values.dims;
  float* values = thread_scratch().tile.at_least(static_cast<std::size_t>(kTileCells) * dims);
  std::fill_n(sums, static_cast<std::size_t>(dims) * kWidth, 0.0F);
  for (int tile = 0; tile < block.n_cells; tile += kTileCells) {
    const int n = std::min(kTileCells, block.n_cells - tile);
    convert_cells(block.operands->values, block.kv_head, block.cells + tile, n, block.n_cells - tile, values);
    const int all_begin = std::clamp(limits.all_begin - tile, 0, n);
    const int all_end = std::clamp(limits.all_end - tile, all_begin, n);
    const float* weight = weights + static_cast<std::size_t>(tile) * kWidth;
    for (int dim = 0; dim < dims; dim += kDims) {
      const auto part = [&](int begin) { return values + begin * dims + dim; };
      float* to = sums + dim * kWidth;
      if (all_begin > 0) weigh_cells<kVectors, kDims, true>(part(0), dims, weight, all_begin, limits, tile, to);
      weigh_cells<kVectors, kDims, false>(part(all_begin), dims, weight + all_begin * kWidth, all_end - all_begin,
                                          limits, tile + all_begin, to);
      if (all_end < n) {
        weigh_cells<kVectors, kDims, true>(part(all_end), dims, weight + all_end * kWidth, n - all_end, limits,
                                           tile + all_end, to);
      }
    }
  }
}

template <int kVectors>
void attend_lanes(const Block& block) {
  constexpr int kWidth = kVectors * kN;
  Scratch& scratch = thread_scratch();
  float* queries = scratch.queries.at_least(static_cast<std::size_t>(block.operands->keys.dims) * kWidth);
  float* scores = scratch.scores.at_least(static_cast<std::size_t>(block.n_cells) * kWidth);
  float* sums = scratch.sums.at_least(static_cast<std::size_t>(block.operands->values.dims) * kWidth);
  const LaneLimits limits(block, kWidth);
  V largest[kVectors];
  V totals[kVectors];
  for (int z = 0; z < kVectors; ++z) largest[z] = hn::Set(kF, -std::numeric_limits<float>::infinity());
  gather_queries(block, kWidth, queries);
  score_block<kVectors>(block, limits, queries, largest, scores);
  weights_of_block<kVectors>(block.n_cells, largest, scores, totals);
  weigh_block<kVectors>(block, limits, scores, sums);
  scatter_output(block, kWidth, sums, totals);
}

void attend_block(const Block& block) {
  switch ((block.n_lanes() + kN - 1) / kN) {
    case 1: return attend_lanes<1>(block);
    case 2: return attend_lanes<2>(block);
    default: return attend_lanes<kLaneVectorsMax>(block);
  }
}

// --- a block of one row: a vector holds cells, then dimensions

// keys [dims][kTileCells] of n cells; columns beyond n are 0 up to a multiple of 4, and undefined after that.
void transpose_keys(const Block& block, int tile, int n, float* keys) {
  const std::uint32_t* cells = block.cells + tile;
  const int n_ahead = block.n_cells - tile;
  const int dims = block.operands->keys.dims;
  float* rows = thread_scratch().rows.at_least(4 * static_cast<std::size_t>(dims));
  with_type(block.operands->keys.type, [&]<KvType kType>() {
    for (int c = 0; c < n; c += 4) {
      const float* from[4];
      for (int i = 0; i < 4; ++i) {
        float* row = rows + i * dims;
        from[i] = row;
        if (c + i + kPrefetchCells < n_ahead) {
          prefetch_row<kType>(block.operands->keys, block.kv_head, cells[c + i + kPrefetchCells]);
        }
        if (c + i < n) {
          convert_row<kType>(row_of(block.operands->keys, block.kv_head, cells[c + i]), dims, row);
        } else {
          std::fill_n(row, dims, 0.0F);
        }
      }
      transpose_four(from, dims, keys + c, kTileCells);
    }
  });
}

// queries [kHeads][dims]; scores of the tile's cells, head h at scores + h * padded.
template <int kHeads>
void score_tile(const float* keys, const float* queries, int dims, int n, float* scores, int padded) {
  for (int c = 0; c < n; c += kRowVectors * kN) {
    V sums[kHeads][kRowVectors];
#pragma GCC unroll 4
    for (int h = 0; h < kHeads; ++h) {
#pragma GCC unroll 4
      for (int v = 0; v < kRowVectors; ++v) sums[h][v] = hn::Zero(kF);
    }
    for (int dim = 0; dim < dims; ++dim) {
      V key[kRowVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kRowVectors; ++v) key[v] = hn::LoadU(kF, keys + dim * kTileCells + c + v * kN);
#pragma GCC unroll 4
      for (int h = 0; h < kHeads; ++h) {
        const V query = hn::Set(kF, queries[h * dims + dim]);
#pragma GCC unroll 4
        for (int v = 0; v < kRowVectors; ++v) sums[h][v] = hn::MulAdd(key[v], query, sums[h][v]);
      }
    }
#pragma GCC unroll 4
    for (int h = 0; h < kHeads; ++h) {
#pragma GCC unroll 4
      for (int v = 0; v < kRowVectors; ++v) hn::StoreU(sums[h][v], kF, scores + h * padded + c + v * kN);
    }
  }
}

void score_row(const Block& block, int begin, int end, float* scores) {
  const int dims = block.operands->keys.dims;
  const int padded = padded_cells(block.n_cells);
  Scratch& scratch = thread_scratch();
  float* queries = scratch.queries.at_least(static_cast<std::size_t>(block.n_heads) * dims);
  float* keys = scratch.tile.at_least(static_cast<std::size_t>(kTileCells) * dims);
  for (int h = 0; h < block.n_heads; ++h) {
    const V scale = hn::Set(kF, block.operands->scale);
    for (int dim = 0; dim < dims; dim += kN) {
      hn::StoreU(hn::Mul(hn::LoadU(kF, block.query(0, h) + dim), scale), kF, queries + h * dims + dim);
    }
  }
  for (int tile = begin; tile < end; tile += kTileCells) {
    const int n = std::min(kTileCells, block.n_cells - tile);
    transpose_keys(block, tile, n, keys);
    for (int h = 0; h < block.n_heads; h += kRowHeadsMax) {
      const float* query = queries + h * dims;
      float* to = scores + h * padded + tile;
      switch (std::min(kRowHeadsMax, block.n_heads - h)) {
        case 1: score_tile<1>(keys, query, dims, n, to, padded); break;
        case 2: score_tile<2>(keys, query, dims, n, to, padded); break;
        case 3: score_tile<3>(keys, query, dims, n, to, padded); break;
        default: score_tile<4>(keys, query, dims, n, to, padded); break;
      }
    }
    for (int h = 0; n < kTileCells && h < block.n_heads; ++h) {
      std::fill_n(scores + h * padded + tile + n, kTileCells - n, -std::numeric_limits<float>::infinity());
    }
  }
}

// weights [padded] of one head.
void weights_of_row(const float* scores, int padded, float* weights) {
  V largest = hn::Load(kF, scores);
  for (int c = kN; c < padded; c += kN) largest = hn::Max(largest, hn::Load(kF, scores + c));
  largest = hn::MaxOfLanes(kF, largest);
  for (int c = 0; c < padded; c += kN) {
    hn::Store(exp_of(hn::Sub(hn::Load(kF, scores + c), largest)), kF, weights + c);
  }
}

// kVectors * kN dimensions from `dim` of kHeads heads, the first of which is `head`.
template <KvType kType, int kHeads, int kVectors>
void weigh_dims(const Block& block, const float* weights, int padded, int head, int dim) {
  V sums[kHeads][kVectors];
  V totals[kHeads];
#pragma GCC unroll 4
  for (int h = 0; h < kHeads; ++h) {
    totals[h] = hn::Zero(kF);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[h][v] = hn::Zero(kF);
  }
  const KvRows& values = block.operands->values;
  for (int c = 0; c < block.n_cells; ++c) {
    if (c + kPrefetchCells < block.n_cells) {
      prefetch_row<kType>(values, block.kv_head, block.cells[c + kPrefetchCells]);
    }
    const std::byte* row = row_of(values, block.kv_head, block.cells[c]);
    V value[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) value[v] = load_numbers<kType>(row, dim + v * kN);
#pragma GCC unroll 4
    for (int h = 0; h < kHeads; ++h) {
      const V weight = hn::Set(kF, weights[(head + h) * padded + c]);
      totals[h] = hn::Add(totals[h], weight);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[h][v] = hn::MulAdd(value[v], weight, sums[h][v]);
    }
  }
#pragma GCC unroll 4
  for (int h = 0; h < kHeads; ++h) {
    const V factor = hn::Div(hn::Set(kF, 1.0F), totals[h]);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(hn::Mul(sums[h][v], factor), kF, block.out(0, head + h) + dim + v * kN);
    }
  }
}

template <KvType kType, int kHeads>
void weigh_heads(const Block& block, const float* weights, int padded, int head, int dim_begin, int dim_end) {
  for (int dim = dim_begin; dim < dim_end;) {
    const int n_vectors = std::min(kRowVectors, (dim_end - dim) / kN);
    if constexpr (kRowVectors == 4) {
      if (n_vectors == 4) weigh_dims<kType, kHeads, 4>(block, weights, padded, head, dim);
      if (n_vectors == 3) weigh_dims<kType, kHeads, 3>(block, weights, padded, head, dim);
    }
    if (n_vectors == 2) weigh_dims<kType, kHeads, 2>(block, weights, padded, head, dim);
    if (n_vectors == 1) weigh_dims<kType, kHeads, 1>(block, weights, padded, head, dim);
    dim += n_vectors * kN;
  }
}

void weigh_row(const Block& block, const float* scores, int dim_begin, int dim_end) {
  const int padded = padded_cells(block.n_cells);
  float* weights = thread_scratch().weights.at_least(static_cast<std::size_t>(block.n_heads) * padded);
  for (int h = 0; h < block.n_heads; ++h) weights_of_row(scores + h * padded, padded, weights + h * padded);
  with_type(block.operands->values.type, [&]<KvType kType>() {
    for (int h = 0; h < block.n_heads; h += kRowHeadsMax) {
      switch (std::min(kRowHeadsMax, block.n_heads - h)) {
        case 1: weigh_heads<kType, 1>(block, weights, padded, h, dim_begin, dim_end); break;
        case 2: weigh_heads<kType, 2>(block, weights, padded, h, dim_begin, dim_end); break;
        case 3: weigh_heads<kType, 3>(block, weights, padded, h, dim_begin, dim_end); break;
        default: weigh_heads<kType, 4>(block, weights, padded, h, dim_begin, dim_end); break;
      }
    }
  });
}

// --- the mask

bool mask_to_bits(const std::uint16_t* mask, int n, std::uint64_t* bits) {
  constexpr std::uint16_t kMinusInfinity = 0xFC00;  // in f16
  const hn::ScalableTag<std::uint16_t> d;
  constexpr int kStep = HWY_LANES(std::uint16_t);
  std::uint8_t* bytes = reinterpret_cast<std::uint8_t*>(bits);
  std::fill_n(bits, (n + 63) / 64, 0);
  auto known = hn::Eq(hn::Zero(d), hn::Zero(d));
  int c = 0;
  for (; c + kStep <= n; c += kStep) {
    const auto value = hn::LoadU(d, mask + c);
    const auto seen = hn::Eq(value, hn::Zero(d));
    known = hn::And(known, hn::Or(seen, hn::Eq(value, hn::Set(d, kMinusInfinity))));
    hn::StoreMaskBits(d, seen, bytes + c / 8);
  }
  bool known_tail = true;
  for (; c < n; ++c) {
    known_tail = known_tail && (mask[c] == 0 || mask[c] == kMinusInfinity);
    bits[c / 64] |= std::uint64_t{mask[c] == 0} << (c % 64);
  }
  return known_tail && hn::AllTrue(d, known);
}

#if HWY_TARGET == HWY_AVX3
constexpr char kName[] = "AVX512";
#elif HWY_TARGET == HWY_AVX2
constexpr char kName[] = "AVX2";
#else
constexpr char kName[] = "NEON";
#endif

const Kernels* kernels() {
  static constexpr Kernels kKernels = {kName,     kLaneVectorsMax * kN, kN, attend_block, score_row,
                                       weigh_row, mask_to_bits};
  return &kKernels;
}

}  // namespace fermata::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
