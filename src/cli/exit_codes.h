#pragma once

#include "base/result.h"
#include "generation/state.h"

namespace fermata::cli {

// What `fermata` ends with; `fermata --help` lists them. A reader of the output that is gone ends it by SIGPIPE, as it
// ends any program: 141 in a shell.
enum ExitCode : int {
  kOk = 0,             // the answer is complete, or ended at its token limit
  kFailed = 1,         // an error, or what was to be said could not be written; standard error says why
  kUsage = 2,          // the command line or the request cannot work as written
  kNoModel = 3,        // the model cannot be loaded
  kEngineStuck = 4,    // the engine did not answer
  kTimedOut = 5,       // a time limit ended the generation
  kInterrupted = 130,  // Ctrl-C; what had been said was printed
  kTerminated = 143,   // the same by SIGTERM
};

// The list above, for --help.
inline constexpr const char* kExitCodesHelp =
    "Exit codes: 0 complete (or its token limit), 1 failed, or the output could not be written, 2 wrong usage,\n"
    "3 no model, 4 engine stuck, 5 time limit, 130 Ctrl-C, 143 SIGTERM (what had been said was printed);\n"
    "141 (of the shell): what reads the output, as head does, was gone before all of it was written.";

ExitCode exit_code_for(EndReason reason);
ExitCode exit_code_for(Code code);
int exit_code_for_signal(int signal);  // 128 + signal, as shells have it

}  // namespace fermata::cli
