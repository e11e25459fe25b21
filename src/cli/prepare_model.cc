#include "engine/llama/prepare_model.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/complain.h"
#include "cli/exit_codes.h"
#include "cli/flags.h"
#include "engine/llama/json_text.h"

namespace fermata::cli {
namespace {

struct PrepareSettings {
  PrepareOptions options;
  std::string type{to_string(kDefaultWeights)};
};

std::map<std::string, WeightType> weight_types() {
  std::map<std::string, WeightType> types;
  for (const WeightType type : kWeightTypes) types.emplace(to_string(type), type);
  return types;
}

int prepare(PrepareSettings& settings, InterruptSignal& signals) {
  settings.options.type = weight_types().at(settings.type);
  settings.options.on_scratch = [&](const std::string& path) {
    signals.before_leaving([path] { unlink(path.c_str()); });
    std::fprintf(stderr, "preparing %s\n", printable(settings.options.target).c_str());
  };
  const Result<Prepared> made = prepare_model(settings.options);
  signals.leave_at_once();
  if (!made) return complain(made.error());
  std::fprintf(stderr, "%s\n",
               *made == Prepared::kWritten ? "written; the original stays"
                                           : ("it was there already, with " + settings.type + " weights").c_str());
  return kOk;
}

}  // namespace

Command add_prepare_model(CLI::App& app) {
  auto settings = std::make_shared<PrepareSettings>();
  CLI::App* command = app.add_subcommand("prepare-model", "Write a model anew with weights of another type, once");
  command->footer("Example: fermata prepare-model big-f16.gguf big-q4_0.gguf --type Q4_0");
  add_path(*command, "source", settings->options.source, "GGUF file")->required();
  add_path(*command, "target", settings->options.target, "GGUF file to write; appears complete or not at all")
      ->required();
  std::vector<std::string> names;
  for (const auto& [name, type] : weight_types()) names.push_back(name);
  add_word(*command, "--type", settings->type, names, "Weights of the target")->capture_default_str();
  command->add_flag("--force", settings->options.rewrite, "Replace a model that stands at the target");
  add_number(*command, "-t,--threads", settings->options.n_threads, "Threads; 0 chooses", {0, 255})
      ->capture_default_str();
  return [settings](InterruptSignal& signals) { return prepare(*settings, signals); };
}

}  // namespace fermata::cli
