#include "base/result.h"

namespace fermata {

std::string_view to_string(Code code) {
  switch (code) {
    case Code::kInvalidArgument: return "invalid_argument";
    case Code::kTooLarge: return "too_large";
    case Code::kContextLength: return "context_length_exceeded";
    case Code::kNotFound: return "not_found";
    case Code::kModelNotFound: return "model_not_found";
    case Code::kWrongState: return "wrong_state";
    case Code::kBusy: return "busy";
    case Code::kNoCells: return "no_cells";
    case Code::kNoSequences: return "no_sequences";
    case Code::kGrammar: return "grammar";
    case Code::kAborted: return "aborted";
    case Code::kUnsupported: return "unsupported";
    case Code::kModel: return "model";
    case Code::kEngine: return "engine";
    case Code::kIo: return "io";
    case Code::kUnauthenticated: return "unauthenticated";
    case Code::kForbidden: return "forbidden";
    case Code::kWrongHost: return "wrong_host";
    case Code::kMediaType: return "media_type";
    case Code::kMethod: return "method_not_allowed";
    case Code::kGone: return "gone";
    case Code::kStale: return "stale";
    case Code::kAlreadyResumed: return "already_resumed";
    case Code::kPaused: return "generation_paused";
    case Code::kIdempotency: return "idempotency_mismatch";
    case Code::kTextSent: return "text_already_sent";
    case Code::kDuplicate: return "duplicate_client_id";
    case Code::kDraining: return "draining";
  }
  return "unknown";
}

}  // namespace fermata
