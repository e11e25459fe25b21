#include "cli/command_tree.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>
#include <utility>

#include "cli/flags.h"

namespace fermata::cli {
namespace {

// "text|json" is text and json.
std::vector<std::string> choices_of(const std::string& value) {
  std::vector<std::string> choices;
  if (value.find('|') == std::string::npos) return choices;
  for (std::size_t begin = 0; begin <= value.size();) {
    const std::size_t end = std::min(value.find('|', begin), value.size());
    choices.push_back(value.substr(begin, end - begin));
    begin = end + 1;
  }
  return choices;
}

FlagShown describe_flag(const CLI::Option& option) {
  FlagShown flag;
  if (option.get_positional()) {
    flag.names.push_back(option.get_name(true, false));
  } else {
    for (const std::string& name : option.get_snames()) flag.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) flag.names.push_back("--" + name);
  }
  if (option.get_type_size() != 0) flag.value = option.get_type_name();
  flag.choices = choices_of(flag.value);
  flag.help = option.get_description();
  flag.default_text = option.get_default_str();
  flag.variable = option.get_envname();
  flag.group = option.get_group();
  flag.takes_file = flag.value == kPathType;
  flag.is_repeatable =
      option.get_items_expected_max() > 1 || option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  flag.is_required = option.get_required();
  return flag;
}

CommandShown describe_command(const CLI::App& app, std::string name) {
  CommandShown command;
  command.name = std::move(name);
  command.help = app.get_description();
  command.footer = app.get_footer();
  for (const CLI::Option* option : app.get_options())
    (option->get_positional() ? command.words : command.flags).push_back(describe_flag(*option));
  for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; }))
    command.commands.push_back(describe_command(*below, command.name + " " + below->get_name()));
  return command;
}

}  // namespace

std::vector<FlagGroup> groups_of(const CommandShown& command) {
  std::vector<FlagGroup> groups;
  for (const FlagShown& flag : command.flags) {
    const auto same = [&](const FlagGroup& group) { return group.name == flag.group; };
    auto group = std::find_if(groups.begin(), groups.end(), same);
    if (group == groups.end()) group = groups.insert(groups.end(), {flag.group, {}});
    group->flags.push_back(&flag);
  }
  return groups;
}

std::string joined(const std::vector<std::string>& words, const std::string& between) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : between).append(word);
  return text;
}

CommandShown describe(const CLI::App& app) { return describe_command(app, app.get_name()); }

}  // namespace fermata::cli
