#pragma once

#include "base/result.h"

namespace fermata::cli {

// Says on standard error what went wrong and gives the exit code for it.
int complain(const Error& error);

}  // namespace fermata::cli
