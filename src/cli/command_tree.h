#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace fermata::cli {

// A flag, or a word that stands without one (then `names` has its one name, without hyphens).
struct FlagShown {
  std::vector<std::string> names;  // "-m", "--model"
  std::string value;               // what it takes, as help calls it; empty: nothing
  std::vector<std::string> choices;
  std::string help;
  std::string default_text;  // empty: none
  std::string variable;      // of the environment; empty: none
  std::string group;
  bool takes_file = false;
  bool is_repeatable = false;
  bool is_required = false;
};

struct CommandShown {
  std::string name;  // as it is called: "fermata bench core"
  std::string help;
  std::string footer;
  std::vector<FlagShown> flags;
  std::vector<FlagShown> words;
  std::vector<CommandShown> commands;

  std::string own_name() const { return name.substr(name.rfind(' ') + 1); }
};

// All that the command line can be, for what is made from it: completions, the manual page, an example of a config
// file.
CommandShown describe(const CLI::App& app);

struct FlagGroup {
  std::string name;
  std::vector<const FlagShown*> flags;
};
// The flags as help groups them. They point into the command.
std::vector<FlagGroup> groups_of(const CommandShown& command);

std::string joined(const std::vector<std::string>& words, const std::string& between = " ");

// Calls it for the command and all below it, each before those below it.
template <class Visit>
void for_each_command(const CommandShown& command, Visit&& visit) {
  visit(command);
  for (const CommandShown& below : command.commands) for_each_command(below, visit);
}

}  // namespace fermata::cli
