#pragma once

#include <CLI/App.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::cli {

// Flags of llama-server and llama-cli that are not ours, and what to do instead.
struct ForeignFlag {
  std::string_view names;    // "-np, --parallel"
  std::string_view command;  // for which of ours; empty: for all
  std::string_view instead;  // "leave it out: …", or what to say
};
std::span<const ForeignFlag> foreign_flags();

// What to do instead of this flag; empty if nobody has it. `command`: "fermata serve".
std::string_view instead_of(std::string_view command, std::string_view flag);

// "'fermata serve' has no flag '-np', which is llama.cpp's: …" of each foreign one among the words of a command line.
// `at`: the command that the words are for.
std::vector<std::string> foreign_flags_among(const std::vector<std::string>& words, const CLI::App& at,
                                             const std::string& name);

// A flag was given what it means there and not here ("--ctx: takes …, not '0'"): what to do instead, behind a "; ".
// Empty if it was another value.
std::string instead_of_value(std::string_view said);

}  // namespace fermata::cli
