#include "cli/usage.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "base/nearest.h"
#include "cli/complain.h"
#include "cli/exit_codes.h"
#include "cli/foreign_flags.h"

namespace fermata::cli {
namespace {

using Words = std::vector<std::string>;

// Where in the tree of commands something stands: "fermata bench core" is three of them.
struct Place {
  const CLI::App* app;
  std::string name;  // as it is called
};

template <class Kind>
bool is(const CLI::ParseError& error) {
  return dynamic_cast<const Kind*>(&error) != nullptr;
}

bool is_flag(std::string_view word) { return word.starts_with('-') && word != "-"; }

Words commands_of(const CLI::App& app) {
  Words names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

Words flags_of(const CLI::App& app) {
  Words names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<Place> places_of(const CLI::App& app) {
  std::vector<Place> places = {{&app, app.get_name()}};
  while (!places.back().app->get_subcommands().empty()) {
    const CLI::App* next = places.back().app->get_subcommands().back();
    places.push_back({next, places.back().name + " " + next->get_name()});
  }
  return places;
}

std::string why_flag_is_unknown(const std::string& word, std::size_t at, const std::vector<Place>& places) {
  const std::string flag = word.substr(0, word.find('='));
  for (std::size_t below = at + 1; below < places.size(); ++below) {
    const Words known = flags_of(*places[below].app);
    if (std::find(known.begin(), known.end(), flag) != known.end())
      return "'" + flag + "' is a flag of '" + places[below].name + "' and stands behind that";
  }
  // "-port" means "--port".
  const std::string spelled = "--" + flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
  return "'" + places[at].name + "' has no flag '" + flag + "'" + did_you_mean(spelled, flags_of(*places[at].app));
}

// Of the words that nobody took; the first that explains the others.
std::string why_unknown(const std::vector<Place>& places) {
  for (std::size_t at = 0; at < places.size(); ++at) {
    const Words left = places[at].app->remaining(false);
    if (left.empty()) continue;
    const Words commands = commands_of(*places[at].app);
    const auto flag = std::find_if(left.begin(), left.end(), is_flag);
    const bool lacks_command = !commands.empty() && at + 1 == places.size();
    if (lacks_command && !is_flag(left.front()))
      return "'" + places[at].name + "' has no command '" + left.front() + "'" + did_you_mean(left.front(), commands);
    if (flag != left.end()) return why_flag_is_unknown(*flag, at, places);
    return "'" + places[at].name + "' does not know what to do with '" + left.front() + "'" +
           (places[at].name == "fermata run" ? ": a prompt of several words stands in quotes" : "");
  }
  return {};
}

// "--port: takes …" of what stands in FERMATA_PORT and not on the command line.
std::string variable_behind(const CLI::App& command, const std::string& said, const Words& words) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string flag = "--" + (option->get_lnames().empty() ? "" : option->get_lnames().front());
    const std::string& variable = option->get_envname();
    if (variable.empty() || !said.starts_with(flag + ":") || std::getenv(variable.c_str()) == nullptr) continue;
    const auto is_given = [&](const std::string& word) {
      const bool is_short = word.starts_with('-') && !word.starts_with("--");  // its value may stand right behind it
      return option->check_name(is_short ? word.substr(0, 2) : word.substr(0, word.find('=')));
    };
    if (std::none_of(words.begin(), words.end(), is_given)) return variable;
  }
  return {};
}

// In whole words: CLI11 takes the -hf of others for -h.
bool asks_for_it(const Words& words) {
  return std::any_of(words.begin(), words.end(),
                     [](const std::string& word) { return word == "-h" || word == "--help" || word == "--version"; });
}

int print_what_was_asked_for(const CLI::App& app, const CLI::ParseError& help_or_version) {
  std::ostringstream text;
  app.exit(help_or_version, text);
  std::fputs(text.str().c_str(), stdout);
  return kOk;
}

bool lacks_only_a_command(const CLI::ParseError& error, const Place& place) {
  return is<CLI::RequiredError>(error) && place.app->get_require_subcommand_min() > 0 &&
         place.app->remaining(true).empty();
}

int complain_all(const Words& said, const Place& place) {
  for (const std::string& one : said) complain({Code::kInvalidArgument, one, {}, false});
  std::fprintf(stderr, "'%s --help' tells more.\n", place.name.c_str());
  return kUsage;
}

}  // namespace

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  const std::vector<std::string_view> names(known.begin(), known.end());
  const std::string_view found = nearest(word, names);
  return found.empty() ? "" : "; did you mean '" + std::string(found) + "'?";
}

int complain_usage(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& words) {
  const std::vector<Place> places = places_of(app);
  if (error.get_exit_code() == 0 && asks_for_it(words)) return print_what_was_asked_for(app, error);
  if (lacks_only_a_command(error, places.back())) {
    std::fputs(app.help().c_str(), stdout);
    return kUsage;
  }
  const bool is_about_words = is<CLI::ExtrasError>(error) || is<CLI::RequiredError>(error);
  const Words foreign = foreign_flags_among(words, *places.back().app, places.back().name);
  if (!foreign.empty()) return complain_all(foreign, places.back());
  if (error.get_exit_code() == 0) return print_what_was_asked_for(app, error);
  std::string unknown = is_about_words ? why_unknown(places) : "";
  if (unknown.empty()) {
    const std::string variable = variable_behind(*places.back().app, error.what(), words);
    unknown = error.what() + (variable.empty() ? "" : ", which is in the variable " + variable) +
              instead_of_value(error.what());
  }
  return complain_all({unknown}, places.back());
}

int complain_of_glued_flags(const CLI::App& app, const std::vector<std::string>& words) {
  const Place place = places_of(app).back();
  Words glued;
  for (const std::string& refused : foreign_flags_among(words, *place.app, place.name))
    if (refused.find(" flag '--") == std::string::npos) glued.push_back(refused);
  return glued.empty() ? kOk : complain_all(glued, place);
}

}  // namespace fermata::cli
