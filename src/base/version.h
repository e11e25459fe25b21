#pragma once

namespace fermata {

const char* version();  // of this build: "0.1.0"

}  // namespace fermata
