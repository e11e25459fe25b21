#include "cli/exit_codes.h"

#include <signal.h>

namespace fermata::cli {

ExitCode exit_code_for(EndReason reason) {
  switch (reason) {
    case EndReason::kNone:
    case EndReason::kStop:
    case EndReason::kLength:
    case EndReason::kToolCalls:
    case EndReason::kContentFilter:
    case EndReason::kReplaced: return kOk;
    case EndReason::kCancelled:
    case EndReason::kDisconnected:
    case EndReason::kShutdown: return kInterrupted;
    case EndReason::kTimeout: return kTimedOut;
    case EndReason::kError: return kFailed;
  }
  return kFailed;
}

ExitCode exit_code_for(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
    case Code::kTooLarge:
    case Code::kContextLength:
    case Code::kGrammar: return kUsage;
    case Code::kModel:
    case Code::kUnsupported: return kNoModel;
    case Code::kEngine: return kEngineStuck;
    case Code::kNotFound:
    case Code::kModelNotFound:
    case Code::kWrongState:
    case Code::kBusy:
    case Code::kNoCells:
    case Code::kNoSequences:
    case Code::kAborted:
    case Code::kIo:
    case Code::kUnauthenticated:
    case Code::kForbidden:
    case Code::kWrongHost:
    case Code::kMediaType:
    case Code::kMethod:
    case Code::kGone:
    case Code::kStale:
    case Code::kAlreadyResumed:
    case Code::kPaused:
    case Code::kIdempotency:
    case Code::kTextSent:
    case Code::kDuplicate:
    case Code::kDraining: return kFailed;
  }
  return kFailed;
}

int exit_code_for_signal(int signal) {
  static_assert(kInterrupted == 128 + SIGINT && kTerminated == 128 + SIGTERM);
  return 128 + signal;
}

}  // namespace fermata::cli
