#pragma once

#include <CLI/App.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::cli {

// "; did you mean 'serve'?", or nothing if no known name is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

// Says on standard error why a command line cannot be, with the nearest name for one that nobody knows, or with what
// stands for a flag of llama.cpp. Prints help or version where these are asked for, and help where only a command is
// missing. `words`: those of the command line. The exit code.
int complain_usage(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& words);

// CLI11 takes llama.cpp's -md for -m with the value d. Of a command line that is parsed: complains of such flags and
// returns the exit code, or 0 if there is none.
int complain_of_glued_flags(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace fermata::cli
