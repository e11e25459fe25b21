#pragma once

#include "base/result.h"
#include "generation/state.h"

namespace fermata::cli {

// What `fermata` ends with; the man page and `fermata --help` list them.
enum ExitCode : int {
  kOk = 0,             // the answer is complete, or ended at its token limit
  kFailed = 1,         // the generation ended with an error; standard error says why
  kUsage = 2,          // the command line or the request cannot work as written
  kNoModel = 3,        // the model cannot be loaded
  kEngineStuck = 4,    // the engine did not answer
  kTimedOut = 5,       // a time limit ended the generation
  kInterrupted = 130,  // Ctrl-C; what had been said was printed
};

ExitCode exit_code_for(EndReason reason);
ExitCode exit_code_for(Code code);

}  // namespace fermata::cli
