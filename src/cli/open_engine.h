#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "engine/chat_template.h"
#include "engine/engine.h"
#include "engine/llama/engine.h"
#include "server/server.h"

namespace fermata::cli {

// What to run on; shared by all commands that load a model.
struct EngineFlags {
  std::string engine = "llama";  // or "fake": scripted, no model
  std::string model;             // empty: the default model, from the usual places
  std::int32_t n_ctx = 4096;     // cells of the pool
  std::int32_t n_threads = 0;
  std::string kv = "f16";  // or "q8_0", "bf16", "K/V" for different types
  bool exact = true;
  std::string attention = "ours";
  std::string chat_template_file;  // empty: the model's own template

  void add_to(CLI::App& app);
  // For the commands that talk.
  void add_chat_template_to(CLI::App& app);
};

struct OpenedEngine {
  std::unique_ptr<Engine> engine;
  std::unique_ptr<ChatTemplate> chat;  // may be null: then prompts are continued as they are
  Error no_chat;                       // why it is null

  // What is to be told, once, by who would use it: that there is none.
  std::optional<Error> without_chat() const;
  void tell_without_chat() const;  // on standard error
};

// What open_engine() would refuse and is known in milliseconds: flags, files that are not there, what a model's file
// says of itself. For who does something else before it loads.
Result<void> check_engine(const EngineFlags& flags);

// Takes a line of progress, without its end, on the thread that loads.
using TellProgress = std::function<void(const std::string& line)>;

// Loads. Progress goes to `tell`, as a few lines; without one to standard error.
Result<OpenedEngine> open_engine(const EngineFlags& flags, const TellProgress& tell = {});

// What a server gets of it. `name`: what clients call it; empty: the model's own name.
LoadedModel to_serve(OpenedEngine opened, const EngineFlags& flags, const std::string& name = {});

// The two halves of that for the llama engine.
Result<LlamaOptions> llama_options(const EngineFlags& flags);
Result<std::unique_ptr<LlamaEngine>> load_llama(const LlamaOptions& options, const TellProgress& tell = {});

// What the user names: --model, or $FERMATA_MODEL if that is not empty.
std::optional<std::string> named_model(const EngineFlags& flags);
// Where the default model should be: .deps/model/default.gguf beside the build, else
// $XDG_DATA_HOME/fermata/default.gguf.
std::string default_model_path();
// If a model is wanted, none is named and the default one is not there: kModel, with where it was looked for and how to
// get one.
std::optional<Error> missing_default_model(const EngineFlags& flags);

}  // namespace fermata::cli
