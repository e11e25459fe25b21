#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "engine/fake/fake_model.h"
#include "generation/request.h"
#include "generation/state.h"
#include "generation/text_stream_reference.h"

namespace fermata::sim {

struct ReferenceToken {
  TokenId token{};
  float logprob = 0;
  float entropy = 0;
  float margin = 0;
};

// What a request must give, found in the plainest way: an engine of its own, one token at a time, never interrupted,
// stop strings looked for in the whole text. It shares no code with the loop, Generation, Fold or TextStream.
struct Reference {
  std::vector<ReferenceToken> tokens;
  std::string raw;                     // bytes of the completion
  std::vector<std::size_t> bytes_end;  // [tokens]
  EndReason end = EndReason::kLength;
  Code error = Code::kEngine;  // when end is kError
  std::string stop_string;
  bool ends_with_eog = false;

  // Text after the first k tokens: all that may be shown then; `finished`: of a generation that ended there.
  reference::Expected text_after(std::size_t k, bool finished) const;
  // Journal rows that have gone out when n_bytes_out raw bytes of the first k tokens have.
  std::size_t rows_out(std::size_t k, std::size_t n_bytes_out, bool finished) const;

  std::string prompt_tail;
  std::vector<std::string> stops;
};

// Precondition: the request is valid and its n_tokens_max is not -1.
Reference run_reference(const Request& request, const FakeModel& model);

// The stop strings are taken out of the request: what they cut off is found afterwards. For making stop strings that
// really occur.
void cut_at_stops(Reference& reference, const std::vector<std::string>& stops);

}  // namespace fermata::sim
