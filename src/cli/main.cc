#include <CLI/CLI.hpp>
#include <map>

#include "cli/commands.h"
#include "cli/exit_codes.h"

namespace cli = fermata::cli;

int main(int argc, char** argv) {
  CLI::App app("fermata: inference that can be paused, inspected and resumed at any token, exactly.", "fermata");
  app.require_subcommand(1);
  app.set_version_flag("--version", FERMATA_VERSION);
  app.footer("Start with: fermata demo");
  const std::map<std::string, cli::Command> commands = {
      {"run", cli::add_run(app)},
      {"demo", cli::add_demo(app)},
      {"bench", cli::add_bench(app)},
      {"doctor", cli::add_doctor(app)},
      {"prepare-model", cli::add_prepare_model(app)},
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? cli::kOk : cli::kUsage;
  }
  return commands.at(app.get_subcommands().front()->get_name())();
}
