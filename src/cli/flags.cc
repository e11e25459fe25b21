#include "cli/flags.h"

#include <CLI/CLI.hpp>

#include "base/utf8.h"

namespace fermata::cli {

std::string long_name(const std::string& names) {
  const std::size_t at = names.find("--");
  return at == std::string::npos ? names : names.substr(at, names.find(',', at) - at);
}

CLI::Option* add_text(CLI::App& app, const std::string& names, std::string& value, const std::string& help) {
  const auto take = [&value, name = long_name(names)](const CLI::results_t& given) {
    if (given.at(0).empty()) throw CLI::ValidationError(name, "must not be empty");
    value = given.at(0);
    return true;
  };
  return app.add_option(names, take, help, false, [&value] { return value; })->type_name("TEXT");
}

CLI::Option* add_path(CLI::App& app, const std::string& names, std::string& value, const std::string& help) {
  return add_text(app, names, value, help)->type_name(std::string(kPathType));
}

std::string why_no_name(const std::string& text) {
  if (text.empty()) return "must not be empty";
  bool is_well = is_utf8(text);
  for (std::size_t at = 0; is_well && at < text.size();) {
    const std::string_view character =
        std::string_view(text).substr(at, utf8_unit(std::string_view(text).substr(at)).n_bytes);
    is_well = !is_ascii_control(character) && !is_c1_control(character);
    at += character.size();
  }
  return is_well ? "" : "takes a name in UTF-8 without control characters";
}

CLI::Option* add_word(CLI::App& app, const std::string& names, std::string& value,
                      const std::vector<std::string>& words, const std::string& help) {
  std::map<std::string, std::string> choices;
  for (const std::string& word : words) choices.emplace(word, word);
  return add_choice(app, names, value, choices, help);
}

CLI::Option* repeatable(CLI::Option* option) {
  return option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->allow_extra_args(false);
}

CLI::Option* add_switch(CLI::App& app, const std::string& names, bool& value, const std::string& help) {
  const auto take = [&value, name = long_name(names)](const CLI::results_t& given) {
    if (given.at(0) != "on" && given.at(0) != "off")
      throw CLI::ValidationError(name, "takes on or off, not '" + given.at(0) + "'");
    value = given.at(0) == "on";
    return true;
  };
  return app.add_option(names, take, help, false, [&value] { return value ? "on" : "off"; })->type_name("on|off");
}

}  // namespace fermata::cli
