#include <algorithm>
#include <string>
#include <string_view>

#include "cli/completion.h"

namespace fermata::cli {
namespace {

// Inside '…', in a place where _arguments reads : [ ] and \ as its own.
std::string escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\'') {
      escaped += "'\\''";
      continue;
    }
    if (std::string_view("\\:[]()").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string action_of(const FlagShown& flag) {
  if (flag.takes_file) return "_files";
  return flag.choices.empty() ? " " : "(" + joined(flag.choices) + ")";
}

std::string argument(const std::string& what) { return " \\\n    '" + what + "'"; }

std::string arguments_of(const FlagShown& flag) {
  std::string text;
  for (const std::string& name : flag.names) {
    std::string spec = flag.is_repeatable ? "*" : "(" + joined(flag.names) + ")";
    spec += name;
    if (!flag.value.empty()) spec += name.starts_with("--") ? "=" : "+";
    spec += "[" + escaped(flag.help) + "]";
    if (!flag.value.empty()) spec += ":" + escaped(flag.value) + ":" + action_of(flag);
    text += argument(spec);
  }
  return text;
}

std::string function_of(const CommandShown& command) {
  std::string name = "_" + command.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  std::string text = name + "() {\n";
  std::string arguments;
  for (const FlagShown& flag : command.flags) arguments += arguments_of(flag);
  for (const FlagShown& word : command.words)
    arguments += argument((word.is_required ? ":" : "::") + escaped(word.names.front()) + ":" + action_of(word));
  if (command.commands.empty()) return text + "  _arguments -s" + arguments + "\n}\n";

  text += "  local curcontext=$curcontext state line\n  local -a commands=(\n";
  std::string cases;
  for (const CommandShown& below : command.commands) {
    text += "    '" + below.own_name() + ":" + escaped(below.help) + "'\n";
    cases += "    " + below.own_name() + ") " + name + "_" + below.own_name() + " ;;\n";
  }
  return text + "  )\n  _arguments -C" + arguments + argument(": :{_describe command commands}") +
         argument("*:: :->rest") + "\n  [[ $state == rest ]] || return\n  case $line[1] in\n" + cases + "  esac\n}\n";
}

}  // namespace

std::string zsh_completion(const CommandShown& program) {
  std::string text = "#compdef fermata\n# Completion of fermata for zsh: save it as _fermata in a folder of $fpath.\n";
  for_each_command(program, [&](const CommandShown& command) { text += function_of(command); });
  return text + "if [[ ${funcstack[1]} == _fermata ]]; then\n  _fermata \"$@\"\nelse\n  compdef _fermata fermata\nfi\n";
}

}  // namespace fermata::cli
