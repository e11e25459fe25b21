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
  char before = 0;
  bool has_control = false;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_c1 = before == '\xC2' && byte >= 0x80 && byte < 0xA0;  // terminals obey these too
    has_control = has_control || byte < 0x20 || byte == 0x7f || is_c1;
    before = c;
  }
  return has_control || !is_utf8(text) ? "takes a name in UTF-8 without control characters" : "";
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
