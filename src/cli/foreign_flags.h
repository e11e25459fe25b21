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

// "'fermata serve' has no flag '-np', which is llama.cpp's: …" of the first foreign one among the words of a command
// line; empty if there is none. `at`: the command that the words are for.
std::string foreign_flag_among(const std::vector<std::string>& words, const CLI::App& at, const std::string& name);

}  // namespace fermata::cli
