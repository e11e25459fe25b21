#include "cli/variables.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <string_view>

#include "base/nearest.h"

namespace fermata::cli {
namespace {

constexpr std::string_view kPrefix = "FERMATA_";

// What else is called so: by clients that we show, by the engine, by tests and by what sets the sources up.
constexpr std::string_view kOthers[] = {"FERMATA_URL", "FERMATA_API_KEY", "FERMATA_MODEL",  "FERMATA_JOBS",
                                        "FERMATA_AMX", "FERMATA_CPUINFO", "FERMATA_BINARY", "FERMATA_PAUSE_S"};
constexpr std::string_view kOthersBegin[] = {"FERMATA_TEST_", "FERMATA_TINY_", "FERMATA_ORACLE_", "FERMATA_SIM_",
                                             "FERMATA_PEER_"};

bool is_of_others(std::string_view name) {
  return std::find(std::begin(kOthers), std::end(kOthers), name) != std::end(kOthers) ||
         std::any_of(std::begin(kOthersBegin), std::end(kOthersBegin),
                     [&](std::string_view begin) { return name.starts_with(begin); });
}

}  // namespace

void name_variables(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    if (option->get_lnames().empty() || option->get_lnames().front() == "help") continue;
    std::string name(kPrefix);
    for (const char c : option->get_lnames().front()) name += c == '-' ? '_' : static_cast<char>(std::toupper(c));
    option->envname(name);
  }
}

std::vector<std::string> strange_variables(const CLI::App& command, const char* const* environment) {
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options())
    if (!option->get_envname().empty()) known.push_back(option->get_envname());
  std::vector<std::string_view> words;
  for (const std::string& name : known) words.push_back(std::string_view(name).substr(kPrefix.size()));
  std::vector<std::string> said;
  for (; *environment != nullptr; ++environment) {
    const std::string_view variable(*environment);
    const std::string name(variable.substr(0, variable.find('=')));
    if (!name.starts_with(kPrefix) || is_of_others(name)) continue;
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string_view near = nearest(std::string_view(name).substr(kPrefix.size()), words);
    said.push_back("the variable " + name + " counts for nothing: no flag has this name" +
                   (near.empty() ? "" : "; did you mean '" + std::string(kPrefix) + std::string(near) + "'?"));
  }
  std::sort(said.begin(), said.end());
  return said;
}

}  // namespace fermata::cli
