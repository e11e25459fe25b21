#include "engine/llama/doctor.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

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

int doctor(const DoctorSettings& settings) {
  DoctorReport report = examine_machine();
  int code = kOk;
  const Result<LlamaOptions> options = llama_options(settings.engine);
  if (!options) return complain(options.error());
  if (const std::optional<Error> missing = missing_default_model(settings.engine)) {
    code = complain(*missing);
  } else if (settings.engine.engine == "llama") {
    const Result<std::unique_ptr<LlamaEngine>> engine = load_llama(*options);
    if (engine)
      report = examine(**engine);
    else
      code = complain(engine.error());
  }
  // The machine can be told of without a model.
  const std::string text = settings.json ? report.to_json() : report.to_text();
  std::fwrite(text.data(), 1, text.size(), stdout);
  return code;
}

}  // namespace

Command add_doctor(CLI::App& app) {
  auto settings = std::make_shared<DoctorSettings>();
  CLI::App* command =
      app.add_subcommand("doctor", "What this machine and model can do: threads, kernels, fingerprint, what is exact");
  command->footer(
      "Without a model, or with one that cannot be loaded, the machine is told of and the exit code is 3.\n\n" +
      std::string(kExitCodesHelp));
  command->add_flag("--json", settings->json, "One JSON object");
  settings->engine.add_to(*command);
  return [settings](InterruptSignal&) { return doctor(*settings); };
}

}  // namespace fermata::cli
