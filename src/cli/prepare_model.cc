#include "engine/llama/prepare_model.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/complain.h"
#include "cli/exit_codes.h"

namespace fermata::cli {
namespace {

struct PrepareSettings {
  std::string source;
  std::string target;
  std::string type{to_string(kDefaultWeights)};
  std::int32_t n_threads = 0;
};

std::map<std::string, WeightType> weight_types() {
  std::map<std::string, WeightType> types;
  for (const WeightType type : {WeightType::kQ4_0, WeightType::kQ4_1, WeightType::kQ8_0, WeightType::kF16,
                                WeightType::kQ6_K, WeightType::kQ4_K_M})
    types.emplace(to_string(type), type);
  return types;
}

int prepare(const PrepareSettings& settings) {
  std::fprintf(stderr, "preparing %s\n", settings.target.c_str());
  const Result<bool> wrote =
      prepare_model(settings.source, settings.target, weight_types().at(settings.type), settings.n_threads);
  if (!wrote) return complain(wrote.error());
  std::fprintf(stderr, *wrote ? "written; the original stays\n" : "it was there already\n");
  return kOk;
}

}  // namespace

Command add_prepare_model(CLI::App& app) {
  auto settings = std::make_shared<PrepareSettings>();
  CLI::App* command = app.add_subcommand("prepare-model", "Write a model anew with weights of another type, once");
  command->footer("Example: fermata prepare-model big-f16.gguf big-q4_0.gguf --type Q4_0");
  command->add_option("source", settings->source, "GGUF file")->required();
  command->add_option("target", settings->target, "GGUF file to write; appears complete or not at all")->required();
  std::vector<std::string> names;
  for (const auto& [name, type] : weight_types()) names.push_back(name);
  command->add_option("--type", settings->type, "Weights of the target")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  command->add_option("-t,--threads", settings->n_threads, "Threads; 0 chooses")
      ->check(CLI::Range(0, 255))
      ->capture_default_str();
  return [settings] { return prepare(*settings); };
}

}  // namespace fermata::cli
