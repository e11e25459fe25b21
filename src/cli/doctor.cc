#include "engine/llama/doctor.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "cli/commands.h"
#include "cli/complain.h"
#include "cli/exit_codes.h"
#include "cli/open_engine.h"

namespace fermata::cli {
namespace {

struct DoctorSettings {
  EngineFlags engine;
  bool json = false;
};

// There is a model to look at: one that was named, or the default one if it was made ready.
bool has_model(const EngineFlags& flags, const LlamaOptions& options) {
  std::error_code ignored;
  return flags.engine == "llama" && (named_model(flags) || std::filesystem::exists(options.model_path, ignored));
}

int doctor(const DoctorSettings& settings) {
  DoctorReport report = examine_machine();
  int code = kOk;
  const Result<LlamaOptions> options = llama_options(settings.engine);
  if (!options) return complain(options.error());
  if (has_model(settings.engine, *options)) {
    const Result<std::unique_ptr<LlamaEngine>> engine = load_llama(*options);
    if (engine)
      report = examine(**engine);
    else
      code = complain(engine.error());
  }
  const std::string text = settings.json ? report.to_json() : report.to_text();
  std::fwrite(text.data(), 1, text.size(), stdout);
  return code;
}

}  // namespace

Command add_doctor(CLI::App& app) {
  auto settings = std::make_shared<DoctorSettings>();
  CLI::App* command =
      app.add_subcommand("doctor", "What this machine and model can do: threads, kernels, fingerprint, what is exact");
  command->add_flag("--json", settings->json, "One JSON object");
  settings->engine.add_to(*command);
  return [settings](InterruptSignal&) { return doctor(*settings); };
}

}  // namespace fermata::cli
