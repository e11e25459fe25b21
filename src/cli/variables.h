#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace fermata::cli {

// Every flag of a command is a variable: --log-format is FERMATA_LOG_FORMAT.
void name_variables(CLI::App& command);

// What is said of each variable FERMATA_… that stands for no flag of the command, nor for anything else of ours:
// nobody would find out. `environment`: "NAME=VALUE", and a null at the end.
std::vector<std::string> strange_variables(const CLI::App& command, const char* const* environment);

}  // namespace fermata::cli
