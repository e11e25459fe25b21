#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace fermata::cli {

// The whole of a regular file that the user named, up to n_bytes_max. Never waits: a pipe or device is refused.
Result<std::string> read_file(const std::string& path, std::size_t n_bytes_max);

// The same, or all of standard input (path "-"), up to n_bytes_max. Says what to do if it is longer, is a
// folder or device, or cannot be read.
Result<std::string> read_input(const std::string& path, std::size_t n_bytes_max);

// Nothing but white space.
bool is_blank(const std::string& text);

}  // namespace fermata::cli
