#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/ids.h"

// Our attention for the CPU, as a ggml ACCEL backend: row-invariant (a row's bits do not depend on the rows, chunks,
// threads or cells beside it) and summing by position. README.md tells how; docs/decisions/002 why.
namespace fermata::attention {

// Whether this CPU has the instructions (AVX2 with FMA, AVX-512, or NEON on 64 bits). Without them register_backend()
// does nothing and ggml's own attention runs.
bool available();

// The instruction set in use, for fingerprints and `doctor`: "AVX512", "AVX2", "NEON", "none". All give the same bits.
std::string instruction_set();

// Makes the backend known to ggml, for the rest of the process. Call before the model is loaded; calling again does
// nothing. libllama then adds it to every context that it creates.
void register_backend();

// Which position each cell of a KV pool holds. One per context; belongs to whoever owns the context and is changed on
// that thread only, never while a decode runs. It keeps a view: the array must outlive it or be replaced.
class PositionTable {
 public:
  // Call once before every llama_decode (a decode call must hold one ubatch): `cells` [n_cells] tells the positions,
  // those included that this decode writes. What attention derived from the mask of the last ubatch is forgotten, and
  // what it derives from this one's is used by all layers.
  void update(std::span<const Position> cells) {
    cells_ = cells;
    ++epoch_;
  }
  std::span<const Position> cells() const { return cells_; }
  std::uint64_t epoch() const { return epoch_; }  // 0 before the first update

 private:
  std::span<const Position> cells_;
  std::uint64_t epoch_ = 0;
};

// While it lives, contexts created on this thread sum by `table`, which must outlive them. A context created without
// one sums in the order of the cells and rebuilds its cell lists for every layer: right for a lone sequence whose
// cells are in order, and slower.
//
//   attention::BindScope bind(&table);
//   llama_context* context = llama_init_from_model(model, params);
class BindScope {
 public:
  explicit BindScope(const PositionTable* table);
  ~BindScope();
  BindScope(const BindScope&) = delete;
  BindScope& operator=(const BindScope&) = delete;

 private:
  const PositionTable* previous_;
};

// Nothing else is to be bound: the number of threads and the abort callback reach the backend through libllama
// (llama_set_n_threads, llama_set_abort_callback). The callback is asked between tasks, from several threads.

// How many attention nodes ran here since the process began: tells a test that it tested this attention.
std::uint64_t nodes_computed();

}  // namespace fermata::attention
