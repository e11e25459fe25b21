#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "engine/kv_ledger.h"
#include "engine/sampling/sampler.h"
#include "engine/vocabulary.h"

namespace fermata {

// One row of a step: `token` of sequence `seq` is computed at `position`, which must be the next one of that sequence.
struct Row {
  TokenId token{};
  Position position = 0;
  SeqId seq{};
  bool wants_logits = false;
};

enum class StepStatus {
  kDone,     // every row is computed; its keys and values are in the pool
  kAborted,  // no row of this step is computed: the pool is as before
};

// Asked by the engine during a step, between graph nodes and between attention tasks, from several threads; true ends
// the step. Must be cheap (a few ns) and must not block.
class AbortFlag {
 public:
  virtual ~AbortFlag() = default;
  virtual bool raised() const = 0;
};

// What is promised about bits by this build, model, KV type and CPU, and why.
struct Exactness {
  bool alone = false;            // the same generation, again, by itself
  bool with_neighbours = false;  // in any batch, chunk, order of cells, mix of prefill and decode
  std::string why;               // one sentence, for people
};

struct EngineInfo {
  std::string model_name;
  std::string fingerprint;  // hex; equal fingerprints may exchange states
  std::int32_t n_vocab = 0;
  std::int32_t n_cells = 0;      // of the pool
  std::int32_t n_ctx_train = 0;  // longest generation the model was made for
  std::int32_t n_rows_max = 0;   // of one step
  Exactness exactness;
};

// Keys and values of positions [begin, end) of one sequence, sealed for travel. Opaque to all but its engine.
struct Page {
  Position begin = 0;
  Position end = 0;
  std::vector<std::byte> bytes;
};

// A model and its KV pool, as the engine thread sees them. One thread at a time; only info(), vocabulary() and
// samplers() may be used from others meanwhile. There is no prefill and no decode here: a step computes rows.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual const EngineInfo& info() const = 0;
  virtual const Vocabulary& vocabulary() const = 0;
  virtual const SamplerFactory& samplers() const = 0;

  // Cells and their owners, as the engine's pool has them after the last call.
  virtual const KvLedger& ledger() const = 0;

  // Computes rows (1 .. n_rows_max) in one forward pass. Rows of one sequence stand in position order. kNoCells if the
  // pool lacks room (nothing changed). An error of another code means that the rows are lost and the pool unchanged.
  // `abort` may be null.
  virtual Result<StepStatus> step(std::span<const Row> rows, const AbortFlag* abort) = 0;

  // The logits [n_vocab] of rows[row] of the last finished step, which had wants_logits. Valid until the next step.
  virtual std::span<const float> logits(std::size_t row) const = 0;

  // `to` (empty before) also owns the cells of `from` at positions [0, end). Copies no keys or values.
  virtual void share(SeqId from, SeqId to, Position end) = 0;

  // The sequence gives up its positions [begin, its end); cells without an owner become free.
  virtual void trim(SeqId seq, Position begin) = 0;

  // Copies [begin, end) of seq out of the pool. At most kPageTokens positions, all present.
  virtual Result<Page> export_page(SeqId seq, Position begin, Position end) = 0;

  // Appends a page to seq, whose next position must be page.begin. kNoCells if the pool lacks room; on any error the
  // pool is unchanged.
  virtual Result<void> import_page(SeqId seq, const Page& page) = 0;
};

}  // namespace fermata
