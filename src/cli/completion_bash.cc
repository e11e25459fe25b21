#include <string>
#include <vector>

#include "cli/completion.h"

namespace fermata::cli {
namespace {

// What $values is set to: words, or one of two that are none.
std::string values_of(const FlagShown& flag) {
  if (!flag.choices.empty()) return joined(flag.choices);
  return flag.takes_file ? "/file" : "/any";
}

std::string case_of(const CommandShown& command) {
  std::vector<std::string> flags;
  std::string cases;
  for (const FlagShown& flag : command.flags) {
    flags.insert(flags.end(), flag.names.begin(), flag.names.end());
    if (!flag.value.empty())
      cases += "        " + joined(flag.names, " | ") + ") values='" + values_of(flag) + "' ;;\n";
  }
  std::string words;
  for (const CommandShown& below : command.commands) words += (words.empty() ? "" : " ") + below.own_name();
  for (const FlagShown& word : command.words) words = values_of(word);
  std::string text = "    '" + command.name + "')\n      flags='" + joined(flags) + "' words='" + words + "'\n";
  if (!cases.empty()) text += "      case $before in\n" + cases + "      esac\n";
  return text + "      ;;\n";
}

constexpr const char* kBegin = R"(_fermata() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=fermata flags words values= i
  # Bash takes --flag=value apart.
  if [[ $word == = ]]; then word=; elif [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$command ${COMP_WORDS[i]}" in
)";

constexpr const char* kEnd = R"(  esac
  if [[ -z $values ]]; then
    if [[ $word == -* || -z $words ]]; then values=$flags; else values=$words; fi
  fi
  COMPREPLY=()
  case $values in
    /any) ;;
    /file) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$values" -- "$word") ;;
  esac
}
complete -F _fermata fermata
)";

}  // namespace

std::string bash_completion(const CommandShown& program) {
  std::vector<std::string> names;
  std::string cases;
  for_each_command(program, [&](const CommandShown& command) {
    if (&command != &program) names.push_back("'" + command.name + "'");
    cases += case_of(command);
  });
  return std::string("# Completion of fermata for bash: source it, e.g. source <(fermata completion bash)\n") + kBegin +
         "      " + joined(names, " | ") +
         ") command+=\" ${COMP_WORDS[i]}\" ;;\n    esac\n  done\n  case $command in\n" + cases + kEnd;
}

}  // namespace fermata::cli
