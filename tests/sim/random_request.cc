#include "random_request.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "reference.h"

namespace fermata::sim {

RequestMaker::RequestMaker(Random& random, const EngineInfo& info, FakeModel model)
    : random_(random), info_(info), model_(std::move(model)) {
  for (std::int32_t n = random_.between(1, 3); n > 0; --n) {
    stems_.emplace_back();
    for (std::int32_t length = random_.between(1, std::min(info_.n_cells, 60)); length > 0; --length)
      stems_.back().push_back(token());
  }
}

TokenId RequestMaker::token() {
  // Pieces of several bytes, single bytes, now and then a control token.
  if (random_.chance(0.5)) return TokenId{random_.between(256, info_.n_vocab - 5)};
  if (random_.chance(0.9)) return TokenId{random_.between(0, 255)};
  return TokenId{random_.between(info_.n_vocab - 4, info_.n_vocab - 1)};
}

std::vector<TokenId> RequestMaker::prompt(std::int32_t n) {
  std::vector<TokenId> tokens;
  if (random_.chance(0.8)) {
    tokens = random_.pick(stems_);
    if (random_.chance(0.5))
      tokens.resize(static_cast<std::size_t>(random_.between(1, static_cast<std::int32_t>(tokens.size()))));
  }
  while (static_cast<std::int32_t>(tokens.size()) < n) tokens.push_back(token());
  tokens.resize(static_cast<std::size_t>(n));
  return tokens;
}

Request RequestMaker::make() {
  Request request;
  const std::int32_t n_cells = info_.n_cells;
  const std::int32_t n_prompt_max = std::min(n_cells, random_.chance(0.1) ? n_cells : 40);
  request.prompt = prompt(random_.chance(0.02) ? n_cells : random_.between(1, n_prompt_max));
  const std::int32_t n_left = n_cells - static_cast<std::int32_t>(request.prompt.size());
  switch (random_.between(0, 9)) {
    case 0: request.n_tokens_max = 0; break;
    case 1: request.n_tokens_max = 1; break;
    case 2: request.n_tokens_max = -1; break;
    case 3: request.n_tokens_max = std::min(n_left, 120); break;
    default: request.n_tokens_max = std::min(n_left, random_.between(2, 40)); break;
  }
  request.sampling = sampling();
  if (random_.chance(0.2)) request.prefix_group = 1;
  if (random_.chance(0.3)) request.priority = random_.between(-1, 2);
  if (random_.chance(0.2)) request.pause_at = random_.between(0, 8);
  if (random_.chance(0.1)) request.timeout = milliseconds(random_.between(1, 200));
  if (random_.chance(0.3) && n_left > 0) request.stop = stops(request);
  return request;
}

SamplingParams RequestMaker::sampling() {
  SamplingParams params;
  params.seed = random_.next() % 4;  // few, so that twins occur
  params.temperature = random_.pick(std::vector<float>{0, 0.8f, 1.5f});
  params.top_k = random_.pick(std::vector<std::int32_t>{0, 1, 5, 40});
  params.repeat_penalty = random_.pick(std::vector<float>{1, 1, 1.3f});
  params.frequency_penalty = random_.pick(std::vector<float>{0, 0, 0.5f});
  params.repeat_last_n = random_.pick(std::vector<std::int32_t>{-1, 0, 4, 64});
  if (random_.chance(0.2)) {
    params.mirostat = 2;
    params.temperature = 1;
    params.mirostat_tau = random_.pick(std::vector<float>{2, 5});
  }
  params.ignore_eos = random_.chance(0.1);
  if (random_.chance(0.2)) params.logit_bias.push_back({token(), random_.pick(std::vector<float>{-3, 2, 12})});
  if (random_.chance(0.2)) {
    params.grammar = grammar();
    // A grammar and a bias that leave no token: an end with an error, known beforehand.
    if (random_.chance(0.3) && params.grammar.starts_with("cycle:"))
      params.logit_bias.push_back({TokenId{std::stoi(params.grammar.substr(params.grammar.rfind(',') + 1))},
                                   -std::numeric_limits<float>::infinity()});
  }
  return params;
}

std::string RequestMaker::grammar() {
  const auto id = [this] { return std::to_string(random_.between(0, info_.n_vocab - 5)); };
  std::string text;
  if (random_.chance(0.5)) {
    text = "cycle:" + id();
    for (std::int32_t n = random_.between(1, 5); n > 0; --n) text += "," + id();
    return text;
  }
  text = "any-of:";
  for (std::int32_t n = random_.between(1, 8); n > 0; --n) {
    text += id();
    for (std::int32_t more = random_.between(0, 4); more > 0; --more) text += "," + id();
    if (n > 1) text += ";";
  }
  return text;
}

// Pieces of what the request would say anyway, with and without a tail that makes them not fit.
std::vector<std::string> RequestMaker::stops(const Request& request) {
  Request unstopped = request;
  if (unstopped.n_tokens_max < 0 || unstopped.n_tokens_max > 40) unstopped.n_tokens_max = 40;
  std::vector<std::string> stops;
  const auto add = [&](std::string stop) {
    if (!stop.empty() && is_utf8(stop)) stops.push_back(std::move(stop));
  };
  const std::string raw = run_reference(unstopped, model_).raw;
  for (std::int32_t n = random_.between(1, 3); n > 0 && !raw.empty(); --n) {
    const auto begin = static_cast<std::size_t>(random_.between(0, static_cast<std::int32_t>(raw.size()) - 1));
    for (std::size_t length = static_cast<std::size_t>(random_.between(1, 12)); length > 0; --length) {
      const std::string piece = raw.substr(begin, length);
      if (!is_utf8(piece)) continue;
      add(random_.chance(0.5) ? piece : piece + "~no");
      break;
    }
  }
  if (random_.chance(0.3)) add("\n");
  if (random_.chance(0.3)) add("\nUser:");
  return stops;
}

}  // namespace fermata::sim
