#include "base/result.h"

namespace fermata {

std::string_view to_string(Code code) {
  switch (code) {
    case Code::kInvalidArgument: return "invalid_argument";
    case Code::kTooLarge: return "too_large";
    case Code::kNotFound: return "not_found";
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
  }
  return "unknown";
}

}  // namespace fermata
