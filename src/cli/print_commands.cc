// The commands that print what is made from the command line itself.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "base/version.h"
#include "cli/command_tree.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/config_example.h"
#include "cli/exit_codes.h"
#include "cli/flags.h"
#include "cli/man_page.h"

namespace fermata::cli {
namespace {

int print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  return kOk;
}

}  // namespace

Command add_config(CLI::App& app) {
  CLI::App* command = app.add_subcommand("config", "Print a config file for 'fermata serve --config'");
  command->footer(
      "Example:\n"
      "  fermata config --example > server.toml     then: fermata serve --config server.toml");
  command
      ->add_flag_callback(
          "--example", [] {}, "Every flag of 'fermata serve' as a key, with its help and its default")
      ->required();
  return [&app](InterruptSignal&) {
    for_each_command(describe(app), [](const CommandShown& each) {
      if (each.name == "fermata serve") print(config_example(each));
    });
    return kOk;
  };
}

Command add_completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print what lets a shell complete commands and flags");
  command->footer(
      "Examples:\n"
      "  source <(fermata completion bash)           in ~/.bashrc\n"
      "  fermata completion zsh > _fermata           in a folder of $fpath\n"
      "  fermata completion fish > ~/.config/fish/completions/fermata.fish");
  add_word(*command, "shell", *shell, {"bash", "zsh", "fish"}, "Which shell")->required();
  return [&app, shell](InterruptSignal&) {
    const CommandShown program = describe(app);
    return print(*shell == "bash"  ? bash_completion(program)
                 : *shell == "zsh" ? zsh_completion(program)
                                   : fish_completion(program));
  };
}

Command add_man(CLI::App& app) {
  CLI::App* command = app.add_subcommand("man", "Print the manual page");
  command->footer("Example: fermata man | man -l -");
  return [&app](InterruptSignal&) { return print(man_page(describe(app), version())); };
}

}  // namespace fermata::cli
