#pragma once

// For tests: the events of a generation whose tokens the test dictates.

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "api/openai/answer.h"
#include "generation/generation.h"
#include "generation/test_model.h"

namespace fermata::api::test {

inline const fermata::test::PieceVocabulary kVocabulary(
    {"Hi",       "Us",       "er",       "er:",  "\n",   "\nUser", " of P", "aris",          "\"q\"\\",
     "\xF0\x9F", "\x98\x80", "\xE4\xBD", "\xA0", "a",    "b",      "\xFF",  "a\xF0\x9F\x98", "。",
     "<think>",  "</th",     "ink>",     "é",    "x\xC3"});

struct Script {
  std::vector<std::string> say;  // pieces; "<control>" and "<end>" are the tokens without text
  std::vector<std::string> stop = {};
  std::int32_t n_tokens_max = -1;
  std::int32_t n_top_logprobs = 0;
  std::vector<std::string> prompt = {"a", "b"};
  EndReason end = EndReason::kNone;  // after the last piece, if it has not ended by itself
  Error error = {};
};

inline TokenId token_of(const std::string& piece) {
  if (piece == "<control>") return kVocabulary.control();
  if (piece == "<end>") return kVocabulary.end();
  EXPECT_NE(kVocabulary.find(piece), kVocabulary.end()) << piece;
  return kVocabulary.find(piece);
}

inline std::vector<Event> play(const Script& script) {
  static const fermata::test::HashSamplerFactory samplers;
  Request request;
  for (const std::string& piece : script.prompt) request.prompt.push_back(token_of(piece));
  request.stop = script.stop;
  request.n_tokens_max = script.n_tokens_max;
  request.n_top_logprobs = script.n_top_logprobs;
  request.sampling.temperature = 0;
  EngineInfo info;
  info.n_vocab = kVocabulary.n_tokens();
  info.n_cells = 100;
  auto valid = validate(std::move(request), info, kVocabulary, samplers);
  Generation generation = *Generation::make(GenerationId{1}, std::move(*valid), kVocabulary, {});
  EXPECT_TRUE(generation.apply(Trigger::kAdmit, WaitReason::kNone, {}));
  for (const std::string& piece : script.say) {
    if (generation.state() == State::kFinished) break;
    generation.add_computed(generation.wanted() - generation.computed(), {});
    std::vector<float> logits(static_cast<std::size_t>(kVocabulary.n_tokens()), -1);
    logits[static_cast<std::size_t>(raw(token_of(piece)))] = 1;
    generation.choose(logits, {});
  }
  if (generation.state() != State::kFinished && script.end != EndReason::kNone)
    generation.finish(script.end, {}, script.error);
  return generation.take_events();
}

inline AnswerHead head(Route route) {
  AnswerHead head;
  head.route = route;
  head.id = route == Route::kChat ? "chatcmpl-1" : "cmpl-1";
  head.model = "m";
  head.generation_id = "gen_1";
  head.session = "s";
  head.system_fingerprint = "fp";
  head.created = 5;
  head.seed = 7;
  return head;
}

inline AnswerText text_of(const std::vector<Event>& events) {
  AnswerText text;
  for (const Event& event : events)
    if (const auto* told = std::get_if<TextEvent>(&event.content)) text.add(*told);
  return text;
}

inline const FinishEvent& end_of(const std::vector<Event>& events) {
  return std::get<FinishEvent>(events.back().content);
}

// Ways an answer with hard characters can go and end.
inline std::vector<std::pair<std::string, Script>> scripts() {
  return {
      {"end of generation", {.say = {"Hi", "\xF0\x9F", "\x98\x80", "<control>", "a", "<end>"}}},
      {"length", {.say = {"Hi", "é", "。"}, .n_tokens_max = 3}},
      {"length inside a character", {.say = {"Hi", "\xF0\x9F"}, .n_tokens_max = 2}},
      {"length inside a token's character", {.say = {"Hi", "a\xF0\x9F\x98"}, .n_tokens_max = 2}},
      {"stop inside tokens", {.say = {"Hi", " of P", "aris"}, .stop = {"Par"}}},
      {"stop of whole tokens", {.say = {"Hi", "\n", "Us", "er:"}, .stop = {"\nUser:"}}},
      {"held and released", {.say = {"Hi", "\n", "Us", "a", "<end>"}, .stop = {"\nUser:"}}},
      {"held at the end", {.say = {"Hi", "\n", "Us", "<end>"}, .stop = {"\nUser:"}}},
      {"ill-formed", {.say = {"a", "\xFF", "\xE4\xBD", "b", "\xA0", "x\xC3", "<control>", "é", "<end>"}}},
      {"nothing", {.say = {"<end>"}}},
      {"only control", {.say = {"<control>", "<control>", "<end>"}}},
      {"no token", {.say = {"a"}, .n_tokens_max = 0}},
      {"cancelled", {.say = {"Hi", "\n", "Us"}, .stop = {"\nUser:"}, .end = EndReason::kCancelled}},
      {"filtered", {.say = {"Hi", "\n", "Us"}, .stop = {"\nUser:"}, .end = EndReason::kContentFilter}},
      {"failed", {.say = {"Hi"}, .end = EndReason::kError, .error = {Code::kEngine, "decode failed", "step 3"}}},
  };
}

}  // namespace fermata::api::test
