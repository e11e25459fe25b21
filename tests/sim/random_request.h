#pragma once

#include <vector>

#include "engine/fake/fake_model.h"
#include "generation/request.h"
#include "random.h"

namespace fermata::sim {

// Requests of one simulated world: many share prefixes, use the samplers' memory, and meet their stop strings.
class RequestMaker {
 public:
  RequestMaker(Random& random, const EngineInfo& info, FakeModel model);

  // May be invalid: too long for the pool, or of sampling fields that do not go together.
  Request make();
  // Of exactly n tokens.
  std::vector<TokenId> prompt(std::int32_t n);

 private:
  TokenId token();
  SamplingParams sampling();
  std::string grammar();
  std::vector<std::string> stops(const Request& request);

  Random& random_;
  const EngineInfo& info_;
  FakeModel model_;
  std::vector<std::vector<TokenId>> stems_;
};

}  // namespace fermata::sim
