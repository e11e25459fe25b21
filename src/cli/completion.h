#pragma once

#include <string>

#include "cli/command_tree.h"

namespace fermata::cli {

// Scripts that complete commands, flags and what flags take, for each of the shells.
std::string bash_completion(const CommandShown& program);
std::string zsh_completion(const CommandShown& program);
std::string fish_completion(const CommandShown& program);

}  // namespace fermata::cli
