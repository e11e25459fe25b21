#include "cli/open_engine.h"

#include <unistd.h>
#include <algorithm>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "cli/complain.h"
#include "cli/flags.h"
#include "cli/input_file.h"
#include "cli/terminal.h"
#include "engine/fake/fake_engine.h"
#include "engine/llama/chat/chat_template.h"
#include "engine/llama/gguf_file.h"

namespace fermata::cli {
namespace {

Result<KvType> parse_kv(const std::string& name) {
  if (name == "f16") return KvType::kF16;
  if (name == "bf16") return KvType::kBf16;
  if (name == "q8_0") return KvType::kQ8_0;
  return Error{Code::kInvalidArgument, "--kv takes f16, bf16 or q8_0, or two of them as K/V", name, false};
}

// Of the operator, if there is one. Before the model, which takes longer.
Result<std::optional<std::string>> read_chat_template(const EngineFlags& flags) {
  if (flags.chat_template_file.empty()) return std::optional<std::string>();
  if (flags.engine == "fake")
    return Error{Code::kInvalidArgument, "--chat-template-file needs a model; the scripted engine has no dialogues",
                 flags.chat_template_file, false};
  Result<std::string> text = read_file(flags.chat_template_file, limits::kChatTemplateBytesMax);
  if (!text) return text.error();
  return std::optional(*std::move(text));
}

// Lines stay, so they are few; a model that is loaded a second time, with other kernels, is not told of again.
std::function<void(float)> in_lines(std::string what, const TellProgress& tell) {
  const int step = isatty(STDERR_FILENO) ? 10 : 50;  // percent: somebody who waits there wants to see that it goes on
  return [what = std::move(what), &tell, step, last = -1](float done) mutable {
    const int percent = static_cast<int>(done * 100.0f) / step * step;
    if (percent <= last) return;
    last = percent;
    tell(what + " " + std::to_string(percent) + " %");
  };
}

// Seconds pass in silence, and never again.
constexpr std::string_view kTesting =
    "checking that its answers are exact (self-test; once for this model, these settings and this CPU)";

}  // namespace

Result<LlamaOptions> llama_options(const EngineFlags& flags) {
  LlamaOptions options;
  options.model_path = named_model(flags).value_or(default_model_path());
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

Result<std::unique_ptr<LlamaEngine>> load_llama(const LlamaOptions& options, const TellProgress& tell) {
  const std::string what = "loading " + std::filesystem::path(options.model_path).filename().string();
  ProgressLine line(what);
  const std::function<void(float)> show = tell ? in_lines(what, tell) : [&line](float done) { line.show(done); };
  const auto progress = [&show](float done) {
    show(done);
    return true;
  };
  return LlamaEngine::load(options, progress, [&, is_told = false]() mutable {
    if (std::exchange(is_told, true)) return;  // other kernels are tested
    if (tell)
      tell(std::string(kTesting));
    else
      line.say(kTesting);
  });
}

void EngineFlags::add_to(CLI::App& app) {
  const std::string group = "Engine";
  add_path(app, "-m,--model", model, "GGUF file; left out: that of FERMATA_MODEL, else the default model")
      ->group(group);
  add_word(app, "--engine", engine, {"llama", "fake"}, "fake: a scripted engine without a model")
      ->group(group)
      ->capture_default_str();
  add_number(app, "-c,--ctx,--ctx-size", n_ctx, "Tokens of context (cells of the KV pool), shared by all generations",
             {128, 1 << 24})
      ->group(group)
      ->capture_default_str();
  add_number(app, "-t,--threads", n_threads, "Threads of a step; 0 chooses", {0, 255})
      ->group(group)
      ->capture_default_str();
  app.add_option("--kv", kv, "Type of keys and values: f16, bf16, q8_0, or two of them as K/V")
      ->group(group)
      ->type_name("TYPE")
      ->capture_default_str();
  add_switch(app, "--exact", exact, "on: switch off what would make bits depend on neighbours")
      ->group(group)
      ->capture_default_str();
  add_word(app, "--attention", attention, {"ours", "ggml"}, "Whose attention computes; ggml's is for comparing")
      ->group(group)
      ->capture_default_str();
}

std::optional<Error> OpenedEngine::without_chat() const {
  if (chat || no_chat.message.empty()) return std::nullopt;
  return Error{no_chat.code, no_chat.message + "; the prompt is continued as it is", no_chat.detail, false};
}

void OpenedEngine::tell_without_chat() const {
  if (const std::optional<Error> why = without_chat()) complain(*why);
}

std::optional<std::string> named_model(const EngineFlags& flags) {
  if (!flags.model.empty()) return flags.model;
  const char* path = std::getenv("FERMATA_MODEL");
  if (path != nullptr && *path != '\0') return path;
  return std::nullopt;
}

LoadedModel to_serve(OpenedEngine opened, const EngineFlags& flags, const std::string& name) {
  LoadedModel loaded;
  loaded.path = flags.engine == "fake" ? "" : named_model(flags).value_or(default_model_path());
  loaded.name = !name.empty() ? name : opened.engine->info().model_name;
  std::replace(loaded.name.begin(), loaded.name.end(), ' ', '-');  // it stands in URLs
  loaded.engine = std::move(opened.engine);
  loaded.chat = std::move(opened.chat);
  return loaded;
}

std::string default_model_path() {
  namespace fs = std::filesystem;
  std::error_code ignored;
  // build/release/src/cli/fermata of a source tree that `make run` set up: .deps is beside build.
  for (fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path(); folder.has_relative_path();
       folder = folder.parent_path())
    if (fs::exists(folder / ".deps/model/default.gguf", ignored)) return folder / ".deps/model/default.gguf";
  const char* data = std::getenv("XDG_DATA_HOME");
  const char* home = std::getenv("HOME");
  const bool has_data = data != nullptr && *data == '/';  // its specification: relative ones are ignored
  const bool has_home = home != nullptr && *home != '\0';
  const fs::path base = has_data ? fs::path(data) : fs::path(has_home ? home : "/") / ".local/share";
  return base / "fermata/default.gguf";
}

std::optional<Error> missing_default_model(const EngineFlags& flags) {
  if (flags.engine != "llama" || named_model(flags)) return std::nullopt;
  const std::string path = default_model_path();
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return std::nullopt;
  return Error{Code::kModel,
               "there is no model: none at " + path +
                   ", no .deps/model/default.gguf above the program; run 'make model' in the sources of fermata, or "
                   "name a GGUF file with --model FILE or the variable FERMATA_MODEL",
               {},
               false};
}

void EngineFlags::add_chat_template_to(CLI::App& app) {
  add_path(app, "--chat-template-file", chat_template_file, "Jinja template for dialogues, instead of the model's own")
      ->group("Engine")
      ->envname("FERMATA_CHAT_TEMPLATE_FILE");
}

Result<void> check_engine(const EngineFlags& flags) {
  const Result<std::optional<std::string>> source = read_chat_template(flags);
  if (!source) return source.error();
  if (flags.engine == "fake") return {};
  const Result<LlamaOptions> options = llama_options(flags);
  if (!options) return options.error();
  if (std::optional<Error> missing = missing_default_model(flags)) return *std::move(missing);
  const Result<std::vector<GgufFile>> files = read_model_files(options->model_path);
  return files ? check_model_kind(files->front()) : files.error();
}

Result<OpenedEngine> open_engine(const EngineFlags& flags, const TellProgress& tell) {
  if (const Result<void> checked = check_engine(flags); !checked) return checked.error();
  const Result<std::optional<std::string>> source = read_chat_template(flags);
  if (!source) return source.error();
  OpenedEngine opened;
  if (flags.engine == "fake") {
    FakeOptions options;
    options.n_cells = flags.n_ctx;
    opened.engine = std::make_unique<FakeEngine>(std::move(options));
    return opened;
  }
  const Result<LlamaOptions> options = llama_options(flags);
  if (!options) return options.error();
  Result<std::unique_ptr<LlamaEngine>> engine = load_llama(*options, tell);
  if (!engine) return engine.error();
  const llama_model* model = (*engine)->model();
  auto chat = *source ? make_llama_chat_template(model, **source) : make_llama_chat_template(model);
  if (chat) {
    opened.chat = *std::move(chat);
  } else if (*source) {
    return Error{Code::kInvalidArgument, flags.chat_template_file + ": " + chat.error().message, chat.error().detail,
                 false};
  } else {
    opened.no_chat = chat.error();
  }
  opened.engine = *std::move(engine);
  return opened;
}

}  // namespace fermata::cli
