#include "engine/llama/loaded_model.h"

#include <cstdlib>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "engine/llama/block_products.h"
#include "engine/llama/llama_log.h"
#include "engine/llama/memory.h"
#include "ggml.h"
#include "llama.h"

namespace fermata {
namespace {

// ggml_abort() calls this before it ends the process. Thrown from there, it unwinds through ggml's C frames, which
// carry unwind tables on every platform we build for.
struct AssertionFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

thread_local bool contained = false;

void on_assertion(const char* message) {
  if (contained) throw AssertionFailed(message);
  std::fprintf(stderr, "%s\n", message);
}

Error failed(const char* what, const std::string& why) {
  std::string detail = LlamaLog::recent();
  if (!why.empty()) detail += (detail.empty() ? "" : "; ") + why;
  if (tells_of_memory(detail)) return too_little_memory(what, detail);
  return Error{Code::kModel, std::string("the model file is damaged or of a kind that this build cannot run: ") + what,
               detail, false};
}

}  // namespace

Error too_little_memory(const std::string& what, const std::string& detail) {
  return Error{Code::kModel, "there is too little memory for the model: " + what, detail, false};
}

void ModelDeleter::operator()(llama_model* model) const { llama_model_free(model); }
void ContextDeleter::operator()(llama_context* context) const { llama_free(context); }

bool hold_tiled_products(bool wanted) {
  static const bool held = [wanted] {
    if (!wanted) setenv("GGML_CPU_TILED_MM", "0", 1);
    const char* value = std::getenv("GGML_CPU_TILED_MM");
    return value == nullptr || std::atoi(value) != 0;
  }();
  return held;
}

Result<void> contain(const char* what, const std::function<void()>& part) {
  static std::once_flag once;
  std::call_once(once, [] { ggml_set_abort_callback(on_assertion); });
  contained = true;
  struct Leave {
    ~Leave() { contained = false; }
  } leave;
  try {
    part();
  } catch (const std::exception& error) {
    return failed(what, error.what());
  }
  return {};
}

Result<ModelPtr> load_model(const std::vector<GgufFile>& files, const KernelSwitches& switches, bool use_mmap,
                            const LoadProgress& progress) {
  LlamaLog::clear();
  llama_backend_init();
  llama_model_params params = llama_model_default_params();
  params.n_gpu_layers = 0;
  params.load_mode = use_mmap ? LLAMA_LOAD_MODE_MMAP : LLAMA_LOAD_MODE_NONE;
  params.use_extra_bufts = switches.repacked_weights;
  choose_block_products({.reordered = switches.reordered_blocks});
  bool given_up = false;
  auto report = [&](float part) {
    given_up = given_up || (progress && !progress(part));
    return !given_up;
  };
  params.progress_callback = [](float part, void* user) { return (*static_cast<decltype(report)*>(user))(part); };
  params.progress_callback_user_data = &report;
  ModelPtr model;
  std::uint64_t n_bytes = 0;
  for (const GgufFile& file : files) n_bytes += file.n_bytes();
  const std::string what = "loading its " + std::to_string(n_bytes >> 20) + " MiB failed";
  auto loaded =
      contain(what.c_str(), [&] { model.reset(llama_model_load_from_file(files.front().path().c_str(), params)); });
  if (given_up) return Error{Code::kAborted, "loading was given up", files.front().path(), false};
  if (!loaded) return loaded.error();
  if (!model) return failed(what.c_str(), "");
  return model;
}

}  // namespace fermata
