#include "cli/config_example.h"

#include <algorithm>
#include <string_view>

#include "cli/flags.h"

namespace fermata::cli {
namespace {

bool is_key(const FlagShown& flag) {
  const std::string& name = flag.names.back();
  return name.starts_with("--") && name != "--help" && name != "--config";
}

// The first long one; others are other names of it.
std::string key_of(const FlagShown& flag) {
  const auto name = std::find_if(flag.names.begin(), flag.names.end(),
                                 [](const std::string& each) { return each.starts_with("--"); });
  return name->substr(2);
}

std::string quoted_toml(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string value_of(const FlagShown& flag, const std::string& text) {
  if (flag.is_repeatable) return "[" + quoted_toml(text) + "]";
  if (flag.value == "on|off") return text == "on" ? "true" : "false";
  return parse_number<double>(text) ? text : quoted_toml(text);
}

std::string lines_of(const FlagShown& flag) {
  std::string text = "## " + flag.help + "\n";
  if (!flag.choices.empty()) text += "## One of " + flag.value + ".\n";
  const std::string key = key_of(flag) + " = ";
  if (!flag.default_text.empty()) return text + "#" + key + value_of(flag, flag.default_text) + "\n\n";
  return text + "## " + key + value_of(flag, flag.value) + "\n\n";
}

}  // namespace

std::string config_example(const CommandShown& command) {
  std::string text = "## Settings of '" + command.name + "', for its --config FILE: every flag with its default.\n" +
                     "## A line that begins with one # is the default: take the # away and change it.\n"
                     "## Lines with two are comments, and keys that have no default.\n\n";
  for (const FlagGroup& group : groups_of(command)) {
    if (group.name != "Options") text += "## ---- " + group.name + " ----\n\n";
    for (const FlagShown* flag : group.flags)
      if (is_key(*flag)) text += lines_of(*flag);
  }
  text.pop_back();
  return text;
}

}  // namespace fermata::cli
