#pragma once

#include <string>

#include "cli/command_tree.h"

namespace fermata::cli {

// The manual page of section 1, in roff with the man macros; ASCII alone.
std::string man_page(const CommandShown& program, const std::string& version);

}  // namespace fermata::cli
