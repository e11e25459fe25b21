#pragma once

#include <string>

#include "cli/command_tree.h"

namespace fermata::cli {

// A config file of the command (TOML) that changes nothing: every flag as a key, with its help and its default. Each
// line begins with one # more than it would in use, so that without them it has every default written out. A flag
// without a default stays a comment.
std::string config_example(const CommandShown& command);

}  // namespace fermata::cli
