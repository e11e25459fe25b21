#pragma once

#include "base/result.h"

namespace fermata::cli {

// To be called before anything is opened: a standard stream that the caller closed is held by something that refuses to
// be read or written, so that no file of ours gets its number and our text.
void hold_standard_streams();

// Threads that are begun from now on have a stack that is large enough, however small `ulimit -s` says.
void give_threads_room();

// What was printed on standard output reaches it, or kIo.
Result<void> flush_output();

}  // namespace fermata::cli
