#pragma once

#include <CLI/App.hpp>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

// Flags that take what they were given whole or refuse it by name. CLI11's own numbers stop at the largest of their
// type without a word, take 010 for 8, and -1 for a very large seed.
namespace fermata::cli {

// The whole of the text as a decimal number. Nothing for a number its type cannot hold, "nan", "inf", or anything
// beside the digits.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stopped != end) return std::nullopt;
  if constexpr (std::is_floating_point_v<Number>)
    if (!std::isfinite(number)) return std::nullopt;
  return number;
}

template <class Number>
struct Bounds {
  Number least = std::numeric_limits<Number>::lowest();
  Number most = std::numeric_limits<Number>::max();
};

// "--top-k" of "-k,--top-k"
std::string long_name(const std::string& names);

template <class Number>
std::string text_of(Number number) {
  std::ostringstream text;
  text << number;
  return text.str();
}

template <class Number>
CLI::Option* add_number(CLI::App& app, const std::string& names, Number& value, const std::string& help,
                        Bounds<Number> bounds = {}) {
  constexpr bool is_whole = std::is_integral_v<Number>;
  const bool is_bounded = bounds.least != Bounds<Number>().least || bounds.most != Bounds<Number>().most;
  const std::string range = text_of(bounds.least) + " to " + text_of(bounds.most);
  const std::string wanted =
      std::string(is_whole ? "a whole number" : "a number") + (is_whole || is_bounded ? " from " + range : "");
  const auto take = [&value, bounds, wanted, name = long_name(names)](const CLI::results_t& given) {
    const std::optional<Number> number = parse_number<Number>(given.at(0));
    if (!number || *number < bounds.least || *number > bounds.most)
      throw CLI::ValidationError(name, "takes " + wanted + ", not '" + given.at(0) + "'");
    value = *number;
    return true;
  };
  return app.add_option(names, take, help, false, [&value] { return text_of(value); })
      ->type_name(is_bounded ? range
                  : is_whole ? "INT"
                             : "NUMBER");
}

// One of some words.
template <class Choice>
CLI::Option* add_choice(CLI::App& app, const std::string& names, Choice& value,
                        const std::map<std::string, Choice>& choices, const std::string& help) {
  std::string words;
  for (const auto& [word, meaning] : choices) words.append(words.empty() ? "" : "|").append(word);
  const auto take = [&value, choices, words, name = long_name(names)](const CLI::results_t& given) {
    const auto found = choices.find(given.at(0));
    if (found == choices.end()) throw CLI::ValidationError(name, "takes " + words + ", not '" + given.at(0) + "'");
    value = found->second;
    return true;
  };
  const auto told = [&value, choices]() -> std::string {
    for (const auto& [word, meaning] : choices)
      if (meaning == value) return word;
    return {};
  };
  return app.add_option(names, take, help, false, told)->type_name(words);
}

// A text or path that must not be empty: an empty one is an unset variable of a script.
CLI::Option* add_text(CLI::App& app, const std::string& names, std::string& value, const std::string& help);

// The same for the path of a file, which shells complete.
inline constexpr std::string_view kPathType = "FILE";
CLI::Option* add_path(CLI::App& app, const std::string& names, std::string& value, const std::string& help);

// Nothing if it can be a name of something in answers and on terminals: UTF-8 without control characters; else what is
// wrong. For CLI::Option::check().
std::string why_no_name(const std::string& text);

// One of some words, for a value that is the word itself.
CLI::Option* add_word(CLI::App& app, const std::string& names, std::string& value,
                      const std::vector<std::string>& words, const std::string& help);

// An option of a list: one value each time it is given, so that the prompt may follow it.
CLI::Option* repeatable(CLI::Option* option);

// on or off.
CLI::Option* add_switch(CLI::App& app, const std::string& names, bool& value, const std::string& help);

}  // namespace fermata::cli
