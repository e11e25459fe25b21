#include "generation/request.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/limits.h"
#include "generation/test_model.h"

namespace fermata {
namespace {

const test::PieceVocabulary kVocabulary({"a", "b", "c"});
const test::HashSamplerFactory kSamplers;

EngineInfo info_of(std::int32_t n_cells, std::int32_t n_ctx_train = 0) {
  EngineInfo info;
  info.n_vocab = kVocabulary.n_tokens();
  info.n_cells = n_cells;
  info.n_ctx_train = n_ctx_train;
  return info;
}

Request request_of(std::size_t n_prompt, std::int32_t n_tokens_max = -1) {
  Request request;
  request.prompt.assign(n_prompt, TokenId{1});
  request.n_tokens_max = n_tokens_max;
  return request;
}

Result<ValidRequest> check(Request request, const EngineInfo& info = info_of(100)) {
  return validate(std::move(request), info, kVocabulary, kSamplers);
}

TEST(RequestTest, WhatFitsIsTakenAndMinusOneBecomesWhatIsLeft) {
  EXPECT_EQ((*check(request_of(60)))->n_tokens_max, 40);
  EXPECT_EQ((*check(request_of(99)))->n_tokens_max, 1);
  EXPECT_EQ((*check(request_of(60, 40)))->n_tokens_max, 40);
  EXPECT_EQ((*check(request_of(100, 0)))->n_tokens_max, 0);
  EXPECT_EQ((*check(request_of(60), info_of(100, 80)))->n_tokens_max, 20);
}

struct Refusal {
  std::string what;
  std::function<void(Request&)> spoil;
  Code code;
  std::vector<std::string> words;  // in message or detail
};

TEST(RequestTest, EveryFieldThatCannotWorkIsRefusedByNameAndFigures) {
  const std::vector<Refusal> refusals{
      {"empty prompt", [](Request& r) { r.prompt.clear(); }, Code::kInvalidArgument, {"prompt", "0"}},
      {"negative token", [](Request& r) { r.prompt[2] = TokenId{-1}; }, Code::kInvalidArgument, {"prompt[2]", "-1"}},
      {"token too large",
       [](Request& r) { r.prompt[9] = TokenId{5}; },
       Code::kInvalidArgument,
       {"prompt[9]", "5", "0..4"}},
      {"prompt as long as the pool", [](Request& r) { r.prompt.resize(100); }, Code::kContextLength, {"prompt", "100"}},
      {"prompt longer than the pool",
       [](Request& r) { r.prompt.resize(5000); },
       Code::kContextLength,
       {"prompt", "5000 tokens", "100"}},
      {"longer than the pool, prompt only",
       [](Request& r) {
         r.prompt.resize(101);
         r.n_tokens_max = 0;
       },
       Code::kContextLength,
       {"prompt", "101", "100"}},
      {"together too long",
       [](Request& r) { r.n_tokens_max = 91; },
       Code::kContextLength,
       {"max_tokens is 91, and at most 90 here: the prompt takes 10 tokens of the", "room for 90"}},
      {"largest number",
       [](Request& r) { r.n_tokens_max = INT32_MAX; },
       Code::kContextLength,
       {"max_tokens", "2147483647"}},
      {"max_tokens below -1", [](Request& r) { r.n_tokens_max = -2; }, Code::kInvalidArgument, {"max_tokens", "-2"}},
      {"empty stop",
       [](Request& r) {
         r.stop = {"a", ""};
       },
       Code::kInvalidArgument,
       {"stop[1]", "0 bytes"}},
      {"too many stops", [](Request& r) { r.stop.assign(20, "a"); }, Code::kTooLarge, {"stop", "20", "16"}},
      {"stop too long",
       [](Request& r) { r.stop = {std::string(1025, 'a')}; },
       Code::kTooLarge,
       {"stop[0]", "1025", "1024"}},
      {"stop that is no text", [](Request& r) { r.stop = {"\xF0\x9F"}; }, Code::kInvalidArgument, {"stop[0]", "UTF-8"}},
      {"negative pause_at", [](Request& r) { r.pause_at = -1; }, Code::kInvalidArgument, {"pause_at", "-1"}},
      {"no time", [](Request& r) { r.timeout = Duration{0}; }, Code::kInvalidArgument, {"timeout", "0"}},
      {"sampling", [](Request& r) { r.sampling.temperature = -1; }, Code::kInvalidArgument, {"temperature", "-1"}},
      {"grammar", [](Request& r) { r.sampling.grammar = "bad"; }, Code::kGrammar, {"grammar", "line 1"}},
  };
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.what);
    Request request = request_of(10);
    refusal.spoil(request);
    const auto checked = check(std::move(request));
    ASSERT_FALSE(checked.has_value());
    EXPECT_EQ(checked.error().code, refusal.code);
    EXPECT_FALSE(checked.error().retryable);
    const std::string said = checked.error().message + " | " + checked.error().detail;
    for (const std::string& word : refusal.words)
      EXPECT_NE(said.find(word), std::string::npos) << word << " in " << said;
  }
}

TEST(RequestTest, TheModelsContextAndTheLimitOfOneGenerationHoldInALargerPool) {
  const auto by_context = check(request_of(10, 91), info_of(1000, 100));
  ASSERT_FALSE(by_context.has_value());
  EXPECT_NE(by_context.error().message.find("the model's context (100 tokens)"), std::string::npos);
  EXPECT_EQ((*check(request_of(10), info_of(INT32_MAX)))->n_tokens_max, limits::kTokensMax - 10);
}

TEST(RequestTest, TheEdgesAreAllowed) {
  Request request = request_of(10, 90);
  request.stop.assign(limits::kStopStringsMax, std::string(limits::kStopStringBytesMax, 'x'));
  request.pause_at = 1000;  // it ends before: no error
  request.timeout = Duration{1};
  request.prompt[0] = kVocabulary.end();  // templates do so
  EXPECT_TRUE(check(request).has_value());
}

}  // namespace
}  // namespace fermata
