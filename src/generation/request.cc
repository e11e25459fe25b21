#include "generation/request.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/limits.h"
#include "base/utf8.h"
#include "engine/sampling/validate.h"

namespace fermata {
namespace {

// The longest a generation can be, and what says so.
struct Room {
  std::int64_t n_tokens = 0;
  std::string_view name;
};

Room room_of(const EngineInfo& info) {
  Room room{info.n_cells, "the cells of the pool"};
  if (info.n_ctx_train > 0 && info.n_ctx_train < room.n_tokens) room = {info.n_ctx_train, "the model's context"};
  if (limits::kTokensMax < room.n_tokens) room = {limits::kTokensMax, "the limit of one generation"};
  return room;
}

std::string tokens_in_words(std::int64_t n) { return std::to_string(n) + (n == 1 ? " token" : " tokens"); }

Result<void> check_prompt(const std::vector<TokenId>& prompt, const Vocabulary& vocabulary) {
  if (prompt.empty())
    return Error{Code::kInvalidArgument, "prompt must have at least one token", "it has 0", false, "prompt"};
  for (std::size_t i = 0; i < prompt.size(); ++i)
    if (!vocabulary.contains(prompt[i]))
      return Error{
          Code::kInvalidArgument, "prompt[" + std::to_string(i) + "] is not in the vocabulary",
          "token " + std::to_string(raw(prompt[i])) + ", vocabulary 0.." + std::to_string(vocabulary.n_tokens() - 1),
          false, "prompt"};
  return {};
}

// Replaces n_tokens_max = -1 by what fits. LangChain knows what has no room by the words "prompt is too long".
Result<void> fit_lengths(Request& request, const EngineInfo& info) {
  if (request.n_tokens_max < -1)
    return Error{Code::kInvalidArgument, "max_tokens must be -1 (as many as fit) or more",
                 "it is " + std::to_string(request.n_tokens_max), false, "max_tokens"};
  const Room room = room_of(info);
  const std::string room_in_words = std::string(room.name) + " (" + tokens_in_words(room.n_tokens) + ")";
  const auto n_prompt = static_cast<std::int64_t>(request.prompt.size());
  const std::int64_t n_left = room.n_tokens - n_prompt;
  if (n_left < (request.n_tokens_max == 0 ? 0 : 1))
    return Error{
        Code::kContextLength,
        "prompt is too long: its " + tokens_in_words(n_prompt) + " leave no room in " + room_in_words + "; shorten it",
        "n_prompt " + std::to_string(n_prompt) + ", limit " + std::to_string(room.n_tokens), false, "prompt"};
  if (request.n_tokens_max > n_left)
    return Error{Code::kContextLength,
                 "max_tokens is " + std::to_string(request.n_tokens_max) + ", and at most " + std::to_string(n_left) +
                     " here: the prompt takes " + tokens_in_words(n_prompt) + " of " + room_in_words +
                     "; leave it out for as many as fit",
                 "n_prompt " + std::to_string(n_prompt) + ", max_tokens " + std::to_string(request.n_tokens_max) +
                     ", limit " + std::to_string(room.n_tokens) + ", room for " + std::to_string(n_left),
                 false, "max_tokens"};
  if (request.n_tokens_max == -1) request.n_tokens_max = static_cast<std::int32_t>(n_left);
  return {};
}

Result<void> check_stops(const std::vector<std::string>& stops) {
  if (stops.size() > limits::kStopStringsMax)
    return Error{Code::kTooLarge, "stop has too many strings",
                 std::to_string(stops.size()) + " strings, limit " + std::to_string(limits::kStopStringsMax)};
  for (std::size_t i = 0; i < stops.size(); ++i) {
    const std::string field = "stop[" + std::to_string(i) + "]";
    if (stops[i].empty()) return Error{Code::kInvalidArgument, field + " must not be empty", "it has 0 bytes"};
    if (stops[i].size() > limits::kStopStringBytesMax)
      return Error{Code::kTooLarge, field + " is too long",
                   std::to_string(stops[i].size()) + " bytes, limit " + std::to_string(limits::kStopStringBytesMax)};
    if (!is_utf8(stops[i])) return Error{Code::kInvalidArgument, field + " is not valid UTF-8", {}};
  }
  return {};
}

Result<void> check_top_logprobs(std::int32_t n) {
  if (n >= 0 && n <= limits::kTopLogprobsMax) return {};
  return Error{Code::kInvalidArgument, "top_logprobs must lie between 0 and " + std::to_string(limits::kTopLogprobsMax),
               "it is " + std::to_string(n)};
}

Result<void> check_times(const Request& request) {
  if (request.pause_at && *request.pause_at < 0)
    return Error{Code::kInvalidArgument, "pause_at must be 0 or more", "it is " + std::to_string(*request.pause_at)};
  if (request.timeout && request.timeout->ns <= 0)
    return Error{Code::kInvalidArgument, "timeout must be longer than 0",
                 "it is " + std::to_string(request.timeout->ns) + " ns"};
  return {};
}

}  // namespace

std::int64_t room_for_tokens(const EngineInfo& info) { return room_of(info).n_tokens; }

Result<ValidRequest> validate(Request request, const EngineInfo& info, const Vocabulary& vocabulary,
                              const SamplerFactory& samplers) {
  if (auto checked = check_prompt(request.prompt, vocabulary); !checked) return checked.error();
  if (auto checked = fit_lengths(request, info); !checked) return checked.error();
  if (auto checked = check_stops(request.stop); !checked) return checked.error();
  if (auto checked = check_times(request); !checked) return checked.error();
  if (auto checked = check_top_logprobs(request.n_top_logprobs); !checked) return checked.error();
  if (auto checked = validate(request.sampling, vocabulary.n_tokens()); !checked) return checked.error();
  Result<std::unique_ptr<Sampler>> sampler = samplers.make(request.sampling);
  if (!sampler) return std::move(sampler).error();
  return ValidRequest(std::move(request), *std::move(sampler));
}

}  // namespace fermata
