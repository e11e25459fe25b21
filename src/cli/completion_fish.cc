#include <string>
#include <string_view>

#include "cli/completion.h"

namespace fermata::cli {
namespace {

std::string quoted_fish(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

// Where a flag may stand: behind the words of its command, with none of those that could follow them.
std::string condition_of(const CommandShown& command) {
  std::string condition;
  for (std::size_t at = command.name.find(' '); at != std::string::npos;) {
    const std::size_t end = command.name.find(' ', at + 1);
    condition += (condition.empty() ? "" : "; and ");
    condition += "__fish_seen_subcommand_from " + command.name.substr(at + 1, end - at - 1);
    at = end;
  }
  if (command.commands.empty()) return condition;
  condition += condition.empty() ? "not __fish_seen_subcommand_from" : "; and not __fish_seen_subcommand_from";
  for (const CommandShown& below : command.commands) condition += " " + below.own_name();
  return condition;
}

std::string what_it_takes(const FlagShown& flag) {
  if (flag.takes_file) return " -r -F";
  return flag.choices.empty() ? " -x" : " -x -a " + quoted_fish(joined(flag.choices));
}

std::string lines_of(const CommandShown& command) {
  const std::string begin = "complete -c fermata -n " + quoted_fish(condition_of(command));
  std::string text;
  for (const CommandShown& below : command.commands)
    text += begin + " -a " + below.own_name() + " -d " + quoted_fish(below.help) + "\n";
  for (const FlagShown& word : command.words) {
    if (word.takes_file) text += begin + " -F\n";
    if (!word.choices.empty()) text += begin + " -a " + quoted_fish(joined(word.choices)) + "\n";
  }
  for (const FlagShown& flag : command.flags) {
    text += begin;
    for (const std::string& name : flag.names)
      text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    text += (flag.value.empty() ? "" : what_it_takes(flag)) + " -d " + quoted_fish(flag.help) + "\n";
  }
  return text;
}

}  // namespace

std::string fish_completion(const CommandShown& program) {
  std::string text =
      "# Completion of fermata for fish: save it as ~/.config/fish/completions/fermata.fish.\ncomplete -c fermata -f\n";
  for_each_command(program, [&](const CommandShown& command) { text += lines_of(command); });
  return text;
}

}  // namespace fermata::cli
