#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "engine/engine.h"
#include "engine/sampling/params.h"
#include "engine/sampling/sampler.h"

namespace fermata {

struct Request {
  std::vector<TokenId> prompt;
  SamplingParams sampling;
  std::vector<std::string> stop;
  std::int32_t n_tokens_max = -1;        // generated ones; -1: as many as fit; 0: compute the prompt only
  std::int32_t priority = 0;             // larger is sooner
  std::uint32_t prefix_group = 0;        // cached prefixes are shared within a group alone: timing tells of them
  std::int32_t n_top_logprobs = 0;       // most likely tokens that are told of at each generated one
  std::optional<std::int32_t> pause_at;  // pause when so many tokens have been generated (0: before the first)
  std::optional<Duration> timeout;       // of running time
};

// The longest a generation of this engine can be, prompt included.
std::int64_t room_for_tokens(const EngineInfo& info);

// A request that was checked against the model and the limits, n_tokens_max = -1 replaced by what fits. Only validate()
// makes one, so whoever holds one need not check again.
class ValidRequest {
 public:
  const Request& operator*() const { return request_; }
  const Request* operator->() const { return &request_; }
  // What its sampling fields were compiled to, before the first token; to be cloned.
  const Sampler& sampler() const { return *sampler_; }

 private:
  friend Result<ValidRequest> validate(Request, const EngineInfo&, const Vocabulary&, const SamplerFactory&);
  friend class Revision;
  // Its prompt and the room for its completion are others now.
  void revise(std::span<const TokenId> prompt, std::int32_t n_room) {
    request_.prompt.assign(prompt.begin(), prompt.end());
    request_.n_tokens_max = std::min(request_.n_tokens_max, n_room);
  }
  ValidRequest(Request request, std::shared_ptr<const Sampler> sampler)
      : request_(std::move(request)), sampler_(std::move(sampler)) {}
  Request request_;
  std::shared_ptr<const Sampler> sampler_;
};

// Refuses, naming field and both figures: an empty prompt, tokens outside the vocabulary, a prompt that leaves no room
// for one more token, prompt and n_tokens_max that do not fit together in the pool or the model's context
// (kContextLength), stop strings that are empty, too long, too many or not UTF-8, a negative pause_at, more
// n_top_logprobs than the limit, a timeout of nothing, sampling fields out of range, a bad grammar. A pause_at that the
// generation ends before is no error. Thread-safe.
Result<ValidRequest> validate(Request request, const EngineInfo& info, const Vocabulary& vocabulary,
                              const SamplerFactory& samplers);

}  // namespace fermata
