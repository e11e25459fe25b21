#pragma once

#include <CLI/App.hpp>
#include <string>

#include "base/result.h"

namespace fermata::cli {

// Gives each key of the file to the flag of its name, unless that was given already on the command line or by a
// variable. Keys stand at the top, or in a section that has the command's name. What is wrong is told with line,
// column, key and what is expected there.
Result<void> read_config(CLI::App& command, const std::string& path);

}  // namespace fermata::cli
