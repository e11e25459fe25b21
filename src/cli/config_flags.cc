#include "cli/config_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/limits.h"
#include "cli/config_file.h"
#include "cli/foreign_flags.h"
#include "cli/input_file.h"
#include "cli/usage.h"

namespace fermata::cli {
namespace {

std::string section_of(const ConfigItem& item) {
  std::string name = item.key.front();
  for (std::size_t i = 1; i + 1 < item.key.size(); ++i) name += "." + item.key[i];
  return name;
}

class ConfigReader {
 public:
  ConfigReader(CLI::App& command, const std::string& path) : command_(command), path_(path) {
    // What was given before the file is read wins over it.
    for (CLI::Option* option : command.get_options())
      if (option->count() > 0) given_.insert(option);
  }

  Result<void> take(const ConfigItem& item) {
    const std::string& name = item.key.back();
    const bool is_ours = item.key.size() == 1 || (item.key.size() == 2 && item.key.front() == command_.get_name());
    if (!is_ours)
      return wrong_at(
          path_, item.key_at,
          "there is no section '" + section_of(item) + "'; keys stand at the top, or in [" + command_.get_name() + "]");
    const auto known = keys();
    if (std::find(known.begin(), known.end(), name) == known.end())
      return wrong_at(path_, item.key_at, "there is no key '" + name + "'" + hint_for(name, known));
    CLI::Option* option = command_.get_option("--" + name);
    const auto [before, is_new] = seen_.emplace(option, name);
    if (!is_new)
      return wrong_at(path_, item.key_at,
                      before->second == name
                          ? "'" + name + "' stands at the top and in a section"
                          : "'" + name + "' is another name of '" + before->second + "', which stands above");
    return give(item, *option);
  }

 private:
  std::string hint_for(const std::string& name, const std::vector<std::string>& known) const {
    const std::string_view instead = instead_of("fermata " + command_.get_name(), "--" + name);
    return instead.empty() ? did_you_mean(name, known) : ", which is llama.cpp's: " + std::string(instead);
  }

  std::vector<std::string> keys() const {
    std::vector<std::string> names;
    for (const CLI::Option* option : std::as_const(command_).get_options())
      for (const std::string& name : option->get_lnames())
        if (name != "config" && name != "help") names.push_back(name);
    return names;
  }

  Result<void> give(const ConfigItem& item, CLI::Option& option) const {
    const std::string& name = item.key.back();
    const auto wrong = [&](const std::string& why) { return wrong_at(path_, item.value_at, name + ": " + why); };
    if (item.is_array && option.get_items_expected_max() < 2) return wrong("takes one value, not an array");
    std::vector<std::string> values = item.values;
    if (item.is_truth && option.get_type_name() == "on|off") values = {values.front() == "true" ? "on" : "off"};
    if (std::find(values.begin(), values.end(), "") != values.end()) return wrong("must not be empty");
    if (values.empty() || given_.contains(&option)) return {};
    try {
      option.add_result(values);
      option.run_callback();
    } catch (const CLI::Error& error) {
      const std::string why = error.what();
      const std::string named = option.get_name() + ": ";
      return wrong(why.starts_with(named) ? why.substr(named.size()) : why);
    }
    return {};
  }

  CLI::App& command_;
  const std::string& path_;
  std::set<const CLI::Option*> given_;
  std::map<const CLI::Option*, std::string> seen_;  // and by which name
};

}  // namespace

Result<void> read_config(CLI::App& command, const std::string& path) {
  const Result<std::string> text = read_input(path, limits::kConfigBytesMax);
  if (!text) return text.error();
  const Result<std::vector<ConfigItem>> items = parse_config(*text, path);
  if (!items) return items.error();
  ConfigReader reader(command, path);
  for (const ConfigItem& item : *items)
    if (const Result<void> taken = reader.take(item); !taken) return taken;
  return {};
}

}  // namespace fermata::cli
