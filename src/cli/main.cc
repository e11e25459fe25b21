#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <exception>
#include <map>
#include <string>

#include "base/version.h"
#include "cli/commands.h"
#include "cli/complain.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/usage.h"

namespace cli = fermata::cli;

namespace {

int run(int argc, char** argv, cli::InterruptSignal& signals) {
  CLI::App app("fermata: inference that can be paused, inspected and resumed at any token, exactly.", "fermata");
  app.require_subcommand(1);
  app.set_version_flag("--version", fermata::version());
  app.footer(
      std::string(
          "Start with: fermata demo, then fermata serve. 'fermata SUBCOMMAND --help' has flags and examples.\n"
          "Without -m the model of the variable FERMATA_MODEL is used, else the default one ('make model').\n\n") +
      cli::kExitCodesHelp);
  const std::map<std::string, cli::Command> commands = {
      {"run", cli::add_run(app)},
      {"serve", cli::add_serve(app)},
      {"demo", cli::add_demo(app)},
      {"bench", cli::add_bench(app)},
      {"doctor", cli::add_doctor(app)},
      {"prepare-model", cli::add_prepare_model(app)},
      {"new-key", cli::add_new_key(app)},
      {"ps", cli::add_ps(app)},
      {"pause", cli::add_pause(app)},
      {"resume", cli::add_resume(app)},
      {"cancel", cli::add_cancel(app)},
      {"tokens", cli::add_tokens(app)},
      {"chat", cli::add_chat(app)},
      {"config", cli::add_config(app)},
      {"completion", cli::add_completion(app)},
      {"man", cli::add_man(app)},
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return cli::complain_usage(app, e, {argv + std::min(argc, 1), argv + argc});
  }
  if (const int code = cli::complain_of_glued_flags(app, {argv + std::min(argc, 1), argv + argc}); code != cli::kOk)
    return code;
  return commands.at(app.get_subcommands().front()->get_name())(signals);
}

}  // namespace

int main(int argc, char** argv) {
  cli::hold_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is a write that fails, as a full disk is
  cli::give_threads_room();
  // Until the process is gone: a signal that comes while the last things end must not do what it does to any program.
  static cli::InterruptSignal& signals = *new cli::InterruptSignal;
  int code = cli::kFailed;
  try {
    code = run(argc, argv, signals);
  } catch (const std::exception& error) {  // memory or a thread that could not be had
    code = cli::complain({fermata::Code::kIo, "the system refuses what is needed", error.what(), false});
  }
  const fermata::Result<void> written = cli::flush_output();
  return written || code != cli::kOk ? code : cli::complain(written.error());
}
