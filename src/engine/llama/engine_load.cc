#include <algorithm>
#include <exception>
#include <new>
#include <optional>
#include <system_error>

#include "base/check.h"
#include "engine/llama/engine.h"
#include "engine/llama/file_cache.h"
#include "engine/llama/json_text.h"
#include "engine/llama/llama_log.h"
#include "engine/llama/memory.h"
#include "engine/llama/row_invariance.h"
#include "engine/llama/sampling/samplers.h"
#include "ggml-cpu.h"
#include "llama.h"

namespace fermata {
namespace {

ggml_type ggml_type_of(KvType type) {
  switch (type) {
    case KvType::kF16: return GGML_TYPE_F16;
    case KvType::kBf16: return GGML_TYPE_BF16;
    case KvType::kQ8_0: return GGML_TYPE_Q8_0;
  }
  return GGML_TYPE_F16;
}

Result<void> check_options(const LlamaOptions& options) {
  auto refuse = [](const char* field, std::int64_t value) {
    return Error{Code::kInvalidArgument, std::string("an option of the engine is out of range: ") + field,
                 std::to_string(value), false};
  };
  if (options.n_cells < 1 || options.n_cells > (1 << 24)) return refuse("n_cells", options.n_cells);
  if (options.n_rows_max < limits::kPrefillRowsMax || options.n_rows_max > 4096)
    return refuse("n_rows_max", options.n_rows_max);
  if (options.n_sequences < 2 || options.n_sequences > limits::kSequencesMax)
    return refuse("n_sequences", options.n_sequences);
  if (options.n_threads < 0) return refuse("n_threads", options.n_threads);
  if (options.n_cells < options.n_rows_max)
    return Error{Code::kInvalidArgument,
                 "the KV pool has fewer cells (" + std::to_string(options.n_cells) + ") than one step has rows (" +
                     std::to_string(options.n_rows_max) + "); ask for more cells (-c)",
                 {},
                 false};
  return {};
}

// K-quants are multiplied by tiles from 8 rows on, with another order of sums than one row gets.
bool has_k_quants(const std::vector<GgufFile>& files) {
  for (const GgufFile& file : files)
    for (const GgufTensor& tensor : file.tensors())
      if (tensor.type >= GGML_TYPE_Q2_K && tensor.type <= GGML_TYPE_Q8_K) return true;
  return false;
}

// Of the ways to run this model, cheapest first; the first that passes the self-test is taken.
std::vector<KernelSwitches> ways_to_try(const LlamaOptions& options, const std::vector<GgufFile>& files) {
  KernelSwitches fast;
  fast.tiled_products = hold_tiled_products(!(options.exact && has_k_quants(files)));
  fast.reordered_blocks = !options.exact;  // costs nothing where weights are Q8_0, Q4_0, Q5_0
  std::vector<KernelSwitches> ways{fast};
  if (options.exact) {
    KernelSwitches plain = fast;
    plain.repacked_weights = false;
    ways.push_back(plain);
  }
  return ways;
}

std::string attention_version(bool ours) {
  return ours ? "fermata 1 " + attention::instruction_set() : std::string("ggml");
}

struct Verdicts {
  FileCache cache{"verdicts"};

  // The thread count takes part: some kernels split their sums by it.
  static std::string key(const Fingerprint& fingerprint, std::int32_t n_threads) {
    return fingerprint.hex + "/" + std::to_string(n_threads);
  }
  std::optional<Exactness> find(const std::string& key) const {
    const auto text = cache.find(key);
    if (!text || text->size() < 4 || (*text)[2] != ' ') return std::nullopt;
    return Exactness{(*text)[0] == '1', (*text)[1] == '1', text->substr(3)};
  }
  void put(const std::string& key, const Exactness& exactness) const {
    cache.put(key,
              std::string(exactness.alone ? "1" : "0") + (exactness.with_neighbours ? "1 " : "0 ") + exactness.why);
  }
};

Error unsupported(const char* message, std::string detail) {
  return Error{Code::kUnsupported, message, std::move(detail), false};
}

// What only a loaded model tells.
Result<void> check_loaded(const llama_model* model) {
  if (llama_model_has_encoder(model) || !llama_model_has_decoder(model))
    return unsupported("the model has an encoder or only makes embeddings; it cannot generate step by step", {});
  if (llama_model_is_recurrent(model) || llama_model_is_hybrid(model))
    return unsupported("the model is recurrent: its state has no cells, so it cannot be cut, shared or mirrored", {});
  if (llama_model_is_diffusion(model)) return unsupported("the model does not generate token by token", {});
  if (llama_model_n_swa(model) > 0)
    return unsupported("the model has a sliding window: its pool drops cells by itself, so it cannot be mirrored",
                       "window of " + std::to_string(llama_model_n_swa(model)));
  const auto rope = llama_model_rope_type(model);
  if (rope == LLAMA_ROPE_TYPE_MROPE || rope == LLAMA_ROPE_TYPE_IMROPE || rope == LLAMA_ROPE_TYPE_VISION)
    return unsupported("the model gives a token several positions; its pool cannot be mirrored", {});
  return {};
}

}  // namespace

// The steps of LlamaEngine::load(), in order.
class EngineLoader {
 public:
  EngineLoader(const LlamaOptions& options, const LoadProgress& progress, const std::function<void()>& before_test)
      : options_(options), progress_(progress), before_test_(before_test) {}

  Result<std::unique_ptr<LlamaEngine>> run() {
    if (auto valid = check_options(options_); !valid) return valid.error();
    LlamaLog::capture();
    auto files = read_model_files(options_.model_path);
    if (!files) return files.error();
    files_ = *std::move(files);
    if (auto kind = check_model_kind(files_.front()); !kind) return kind.error();
    if (auto fits = check_pool_fits(files_.front(), options_, read_memory_budget()); !fits) return fits.error();
    threads_ = choose_threads(read_cpu_budget(), options_.n_threads);
    options_.n_threads = threads_.n_threads;
    ours_ = options_.attention == AttentionChoice::kOurs && attention::available();
    if (ours_) attention::register_backend();

    const auto ways = ways_to_try(options_, files_);
    std::optional<Exactness> first_verdict;
    for (std::size_t i = 0; i < ways.size(); ++i) {
      auto engine = try_way(ways[i]);
      if (!engine) return engine.error();
      if (*engine && ((*engine)->info_.exactness.with_neighbours || ways.size() == 1)) return *std::move(engine);
      if (options_.self_test == SelfTest::kNever) return *std::move(engine);
      if (i == 0) first_verdict = verdict_;
    }
    // None is exact: serve the fastest, and say so.
    return load_way(ways.front(), *first_verdict);
  }

 private:
  // An engine with its verdict; nothing if it is known beforehand that another way has to be tried.
  Result<std::unique_ptr<LlamaEngine>> try_way(const KernelSwitches& switches) {
    auto fingerprint = fingerprint_of(switches);
    if (!fingerprint) return fingerprint.error();
    const std::string key = Verdicts::key(*fingerprint, options_.n_threads);
    std::optional<Exactness> known;
    if (options_.self_test == SelfTest::kCached) known = verdicts_.find(key);
    if (options_.self_test == SelfTest::kNever) known = Exactness{false, false, "the self-test was not asked for"};
    if (known) verdict_ = *known;
    if (known && !known->with_neighbours && options_.exact && options_.self_test == SelfTest::kCached)
      return std::unique_ptr<LlamaEngine>();
    auto engine = load_way(switches, known.value_or(Exactness{}));
    if (!engine || known) return engine;
    if (before_test_) before_test_();
    auto tested =
        test_row_invariance(**engine, {1, [&](std::int32_t n) { (*engine)->use_threads(n); }, options_.n_threads});
    if (!tested) return tested.error();
    verdict_ = tested->exactness;
    (*engine)->info_.exactness = verdict_;
    verdicts_.put(key, verdict_);
    return engine;
  }

  Result<Fingerprint> fingerprint_of(const KernelSwitches& switches) const {
    return make_fingerprint({&files_, switches, options_.k_type, options_.v_type, attention_version(ours_)});
  }

  Result<std::unique_ptr<LlamaEngine>> load_way(const KernelSwitches& switches, Exactness exactness) {
    auto fingerprint = fingerprint_of(switches);
    if (!fingerprint) return fingerprint.error();
    std::unique_ptr<LlamaEngine> engine(new LlamaEngine);
    engine->options_ = options_;
    engine->switches_ = switches;
    engine->threads_ = threads_;
    engine->attention_is_ours_ = ours_;
    engine->fingerprint_ = *std::move(fingerprint);
    auto model = load_model(files_, switches, options_.use_mmap, progress_);
    if (!model) return model.error();
    engine->model_ = *std::move(model);
    if (auto fit = check_loaded(engine->model_.get()); !fit) return fit.error();
    if (auto made = fill(*engine, std::move(exactness)); !made) return made.error();
    return engine;
  }

  Result<void> fill(LlamaEngine& engine, Exactness exactness) {
    Result<std::unique_ptr<LlamaVocabulary>> vocabulary = Error{};
    if (auto ok = contain("its vocabulary", [&] { vocabulary = LlamaVocabulary::make(engine.model_.get()); }); !ok)
      return ok.error();
    if (!vocabulary) return vocabulary.error();
    engine.vocabulary_ = *std::move(vocabulary);
    engine.samplers_ = make_llama_samplers(engine.model_.get());
    if (auto made = make_context(engine); !made) return made.error();
    EngineInfo& info = engine.info_;
    const auto name = files_.front().text("general.name");
    info.model_name = printable(name && !name->empty() ? std::string(*name) : options_.model_path);
    info.fingerprint = engine.fingerprint_.hex;
    info.n_vocab = engine.vocabulary_->n_tokens();
    info.n_cells = static_cast<std::int32_t>(llama_n_ctx(engine.context_.get()));
    info.n_ctx_train = llama_model_n_ctx_train(engine.model_.get());
    info.n_rows_max = options_.n_rows_max;
    info.exactness = std::move(exactness);
    engine.options_.n_cells = info.n_cells;
    engine.ledger_ = std::make_unique<KvLedger>(static_cast<std::uint32_t>(info.n_cells), options_.n_sequences - 1);
    engine.table_.assign(static_cast<std::size_t>(info.n_cells), KvLedger::kFree);
    return engine.warm_up();
  }

  // ggml frees a buffer twice when it gets one and then not the next, so what it will ask for is tried beforehand.
  Result<void> make_context(LlamaEngine& engine) const {
    const auto wanted = pool_bytes_wanted(files_.front(), options_);
    const auto n_vocab = static_cast<std::uint64_t>(engine.vocabulary_->n_tokens());
    const std::uint64_t for_steps = step_bytes_wanted(files_.front(), options_, n_vocab);
    if (!has_room_for(wanted.value_or(0) + for_steps)) return too_little_memory_for_pool(wanted, for_steps, options_);
    LlamaLog::clear();
    Result<void> made = engine.make_context();
    if (made || !tells_of_memory(made.error().message + made.error().detail)) return made;
    return too_little_memory_for_pool(wanted, for_steps, options_);
  }

  LlamaOptions options_;
  const LoadProgress& progress_;
  const std::function<void()>& before_test_;
  std::vector<GgufFile> files_;
  ThreadChoice threads_;
  bool ours_ = false;
  Verdicts verdicts_;
  Exactness verdict_;
};

Result<std::unique_ptr<LlamaEngine>> LlamaEngine::load(const LlamaOptions& options, const LoadProgress& progress,
                                                       const std::function<void()>& before_test) {
  try {
    return EngineLoader(options, progress, before_test).run();
  } catch (const std::bad_alloc& error) {
    return too_little_memory("an allocation failed", error.what());
  } catch (const std::system_error& error) {  // a thread that could not be started
    return Error{Code::kModel, "the system refuses what the engine needs", error.what(), true};
  }
}

Result<void> LlamaEngine::make_context() {
  llama_context_params params = llama_context_default_params();
  const auto n_rows = static_cast<std::uint32_t>(options_.n_rows_max);
  params.n_ctx = static_cast<std::uint32_t>(options_.n_cells);
  params.n_batch = n_rows;
  params.n_ubatch = n_rows;
  params.n_seq_max = static_cast<std::uint32_t>(options_.n_sequences);
  params.n_outputs_max = static_cast<std::uint32_t>(n_outputs_max());
  params.n_threads = options_.n_threads;
  params.n_threads_batch = options_.n_threads;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
  params.type_k = ggml_type_of(options_.k_type);
  params.type_v = ggml_type_of(options_.v_type);
  params.kv_unified = true;
  params.no_perf = true;
  params.cb_eval = StepWatch::on_node;
  params.cb_eval_user_data = &watch_;
  params.abort_callback = abort_is_raised;
  params.abort_callback_data = this;
  const attention::BindScope bind(attention_is_ours_ ? &attention_table_ : nullptr);
  auto made = contain("no context could be made", [&] { context_.reset(llama_init_from_model(model_.get(), params)); });
  if (!made) return made.error();
  if (!context_) return unsupported("the model cannot be run with these options", LlamaLog::recent());
  if (llama_n_batch(context_.get()) < n_rows || llama_n_ubatch(context_.get()) < n_rows)
    return unsupported("the model takes fewer rows in a step than were asked for",
                       std::to_string(llama_n_ubatch(context_.get())) + " of " + std::to_string(n_rows));
  auto pool_params = ggml_threadpool_params_default(options_.n_threads);
  pool_of_threads_ = ggml_threadpool_new(&pool_params);
  llama_attach_threadpool(context_.get(), pool_of_threads_, pool_of_threads_);
  return {};
}

// One token: reads all weights once, shows whether the pool can be mirrored, and teaches the layout of its state.
Result<void> LlamaEngine::warm_up() {
  const Row row{TokenId{0}, 0, SeqId{0}, true};
  Result<StepStatus> done = Error{};
  auto ran = contain("the first step failed", [&] { done = step(std::span(&row, 1), nullptr); });
  if (!ran) return ran.error();
  if (!done)  // the engine is not stuck: this model does not run
    return Error{Code::kModel, "the first step failed: " + done.error().message, done.error().detail, false};
  if (watch_.written().empty())
    return unsupported("the pool of this model cannot be mirrored: it does not say which cells it writes", {});
  std::vector<std::byte> blob(llama_state_seq_get_size(context_.get(), 0));
  const std::size_t n =
      llama_state_seq_get_data(context_.get(), reinterpret_cast<std::uint8_t*>(blob.data()), blob.size(), 0);
  if (n != blob.size()) return unsupported("the pool of this model cannot be moved in pages", LlamaLog::recent());
  auto layout = KvLayout::learn(blob);
  if (!layout) return layout.error();
  layout_ = *std::move(layout);
  trim(SeqId{0}, 0);
  return {};
}

}  // namespace fermata
