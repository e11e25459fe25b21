#include "cli/open_engine.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "cli/interrupt_signal.h"
#include "cli/terminal.h"
#include "engine/fake/fake_engine.h"
#include "engine/llama/chat/chat_template.h"

namespace fermata::cli {
namespace {

Result<KvType> parse_kv(const std::string& name) {
  if (name == "f16") return KvType::kF16;
  if (name == "bf16") return KvType::kBf16;
  if (name == "q8_0") return KvType::kQ8_0;
  return Error{Code::kInvalidArgument, "--kv takes f16, bf16 or q8_0, or two of them as K/V", name, false};
}

}  // namespace

Result<LlamaOptions> llama_options(const EngineFlags& flags) {
  LlamaOptions options;
  options.model_path = flags.model.empty() ? default_model_path() : flags.model;
  options.n_cells = flags.n_ctx;
  options.n_threads = flags.n_threads;
  options.exact = flags.exact;
  options.attention = flags.attention == "ggml" ? AttentionChoice::kGgml : AttentionChoice::kOurs;
  const std::size_t slash = flags.kv.find('/');
  const Result<KvType> k = parse_kv(flags.kv.substr(0, slash));
  const Result<KvType> v = slash == std::string::npos ? k : parse_kv(flags.kv.substr(slash + 1));
  if (!k) return k.error();
  if (!v) return v.error();
  options.k_type = *k;
  options.v_type = *v;
  return options;
}

Result<std::unique_ptr<LlamaEngine>> load_llama(const LlamaOptions& options) {
  ProgressLine progress("loading " + std::filesystem::path(options.model_path).filename().string());
  return LlamaEngine::load(options, [&](float done) {
    progress.show(done);
    return !InterruptSignal::is_pending();
  });
}

void EngineFlags::add_to(CLI::App& app) {
  const std::string group = "Engine";
  app.add_option("-m,--model", model, "GGUF file; the default model if left out")->group(group);
  app.add_option("--engine", engine, "llama, or fake: a scripted engine without a model")
      ->group(group)
      ->check(CLI::IsMember({"llama", "fake"}))
      ->capture_default_str();
  app.add_option("-c,--ctx", n_ctx, "Cells of the KV pool, shared by all generations")
      ->group(group)
      ->check(CLI::Range(128, 1 << 24))
      ->capture_default_str();
  app.add_option("-t,--threads", n_threads, "Threads of a step; 0 chooses")
      ->group(group)
      ->check(CLI::Range(0, 255))
      ->capture_default_str();
  app.add_option("--kv", kv, "Type of keys and values: f16, bf16, q8_0, or two of them as K/V")
      ->group(group)
      ->capture_default_str();
  app.add_option("--exact", exact, "on: switch off what would make bits depend on neighbours")->group(group);
  app.add_option("--attention", attention, "ours, or ggml's")
      ->group(group)
      ->check(CLI::IsMember({"ours", "ggml"}))
      ->capture_default_str();
}

std::string default_model_path() {
  namespace fs = std::filesystem;
  if (const char* path = std::getenv("FERMATA_MODEL")) return path;
  std::error_code ignored;
  // build/release/src/cli/fermata of a source tree that `make run` set up: .deps is beside build.
  for (fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path(); folder.has_relative_path();
       folder = folder.parent_path())
    if (fs::exists(folder / ".deps/model/default.gguf", ignored)) return folder / ".deps/model/default.gguf";
  const char* data = std::getenv("XDG_DATA_HOME");
  const char* home = std::getenv("HOME");
  const fs::path base = data ? fs::path(data) : fs::path(home ? home : "/") / ".local/share";
  return base / "fermata/default.gguf";
}

Result<OpenedEngine> open_engine(const EngineFlags& flags) {
  OpenedEngine opened;
  if (flags.engine == "fake") {
    opened.engine = std::make_unique<FakeEngine>(FakeOptions{});
    return opened;
  }
  const Result<LlamaOptions> options = llama_options(flags);
  if (!options) return options.error();
  Result<std::unique_ptr<LlamaEngine>> engine = load_llama(*options);
  if (!engine) return engine.error();
  // A model without a template of its own still answers raw prompts.
  if (auto chat = make_llama_chat_template((*engine)->model())) opened.chat = *std::move(chat);
  opened.engine = *std::move(engine);
  return opened;
}

}  // namespace fermata::cli
