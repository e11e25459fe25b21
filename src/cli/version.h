#pragma once

namespace fermata::cli {

const char* version();  // of this build: "0.1.0"

}  // namespace fermata::cli
