#pragma once

#include <string>

#include "server/server.h"

namespace fermata::cli {

// What `fermata serve` says on standard output when it can be called: what it serves, and calls to try as they stand.
std::string told_when_ready(const Readiness& now);

}  // namespace fermata::cli
