#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/attention/attention.h"
#include "engine/engine.h"
#include "engine/llama/fingerprint.h"
#include "engine/llama/loaded_model.h"
#include "engine/llama/options.h"
#include "engine/llama/page_codec.h"
#include "engine/llama/step_watch.h"
#include "engine/llama/threads.h"
#include "engine/llama/vocabulary.h"

struct ggml_threadpool;

namespace fermata {

// A GGUF model on libllama: one context with a unified KV pool, mirrored cell by cell in a KvLedger. One thread
// at a time. Nothing here waits, and nothing here starts a thread of its own.
//
// The books: libllama chooses the cells of a step by itself and does not tell. step() predicts them (KvLedger), fills
// the table that our attention sums by, and then compares with the indices that the graph really writes. They have
// never differed; if they did, the real ones would be taken and counted.
class LlamaEngine final : public Engine {
 public:
  // Loads, warms up, works out the fingerprint and the exactness. kModel, kUnsupported or kInvalidArgument, each with
  // what is wrong and where; kAborted if `progress` (may be empty) gave up. `before_test` (may be empty) is called
  // before each self-test: it takes as long as some hundred steps.
  static Result<std::unique_ptr<LlamaEngine>> load(const LlamaOptions& options, const LoadProgress& progress,
                                                   const std::function<void()>& before_test = {});
  ~LlamaEngine() override;

  const EngineInfo& info() const override { return info_; }
  const Vocabulary& vocabulary() const override { return *vocabulary_; }
  const SamplerFactory& samplers() const override { return *samplers_; }
  const KvLedger& ledger() const override { return *ledger_; }
  Result<StepStatus> step(std::span<const Row> rows, const AbortFlag* abort) override;
  std::span<const float> logits(std::size_t row) const override;
  void share(SeqId from, SeqId to, Position end) override;
  void trim(SeqId seq, Position begin) override;
  Result<Page> export_page(SeqId seq, Position begin, Position end) override;
  Result<void> import_page(SeqId seq, const Page& page) override;

  // --- beyond Engine: for llama-common (chat templates), the doctor and the tests
  const llama_model* model() const { return model_.get(); }
  const LlamaOptions& options() const { return options_; }  // n_cells, n_threads as they came to be
  const Fingerprint& fingerprint() const { return fingerprint_; }
  const KernelSwitches& switches() const { return switches_; }
  const ThreadChoice& threads() const { return threads_; }
  std::string attention_in_use() const;  // "ours AVX512" or "ggml"
  std::uint64_t pool_bytes() const;
  std::uint64_t n_mispredictions() const { return n_mispredictions_; }
  // libllama's own last position of a sequence, -1 if empty: what tests compare the ledger with.
  Position last_position_inside(SeqId seq) const;
  // Fewer threads for a while (self-test). 1 .. options().n_threads.
  void use_threads(std::int32_t n);

 private:
  LlamaEngine() = default;
  Result<void> make_context();
  Result<void> warm_up();
  void check_rows(std::span<const Row> rows) const;
  int decode(std::span<const Row> rows, std::string& thrown);
  Result<StepStatus> settle(int rc, std::span<const Row> rows, std::span<const CellIndex> predicted,
                            const std::string& thrown);
  void take_back(std::span<const Row> rows, std::span<const CellIndex> cells);
  void check_agrees(std::span<const Row> rows) const;
  void audit_masks(std::span<const Row> rows);
  std::int32_t n_outputs_max() const;
  SeqId scratch() const { return SeqId{options_.n_sequences - 1}; }
  static bool abort_is_raised(void* engine);

  LlamaOptions options_;
  KernelSwitches switches_;
  ThreadChoice threads_;
  Fingerprint fingerprint_;
  EngineInfo info_;
  ModelPtr model_;
  std::unique_ptr<LlamaVocabulary> vocabulary_;
  std::unique_ptr<SamplerFactory> samplers_;
  std::unique_ptr<KvLedger> ledger_;
  KvLayout layout_;
  std::vector<Position> table_;  // [n_cells]; the ledger's positions and those of the step under way
  attention::PositionTable attention_table_;
  StepWatch watch_;
  const AbortFlag* abort_ = nullptr;  // of the step under way
  ggml_threadpool* pool_of_threads_ = nullptr;
  bool attention_is_ours_ = false;
  std::uint64_t n_mispredictions_ = 0;
  std::vector<KvLedger::Placement> placements_;  // of the step under way
  std::vector<float*> logits_;                   // [n_rows] of the last step; null where not wanted
  ContextPtr context_;                           // goes first: it uses all of the above

  friend class EngineLoader;
};

}  // namespace fermata
