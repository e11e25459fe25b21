#include "api/openai/call.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>

#include "base/limits.h"

namespace fermata::api {
namespace {

template <class Enum>
int number_of(Enum value) {
  return static_cast<int>(value);
}

// What a case may expect of a call, by the names of call_cases.json.
json::object describe(const Call& call) {
  json::object out;
  json::array messages;
  for (const ChatMessage& message : call.messages) messages.push_back({message.role, message.content});
  out["messages"] = messages;
  out["continues_last"] = call.continues_last;
  out["prompt_text"] = call.prompt_text;
  json::array tokens;
  for (const TokenId token : call.prompt_tokens) tokens.emplace_back(raw(token));
  out["prompt_tokens"] = call.has_prompt_tokens ? json::value(tokens) : json::value();
  out["model"] = call.model;
  out["n_tokens_max"] = call.request.n_tokens_max;
  json::array stops;
  for (const std::string& stop : call.request.stop) stops.emplace_back(stop);
  out["stop"] = stops;
  out["seed"] = call.has_seed ? json::value(call.request.sampling.seed) : json::value();
  out["json_schema"] = call.request.sampling.json_schema;
  out["grammar"] = call.request.sampling.grammar;
  out["ignore_eos"] = call.request.sampling.ignore_eos;
  json::array biases;
  for (const LogitBias& bias : call.request.sampling.logit_bias)
    biases.push_back({raw(bias.token), std::isinf(bias.bias) ? json::value("-inf") : json::value(bias.bias)});
  out["logit_bias"] = biases;
  json::array breakers;
  for (const std::string& breaker : call.request.sampling.dry_sequence_breakers) breakers.emplace_back(breaker);
  out["dry_sequence_breakers"] = breakers;
  out["stream"] = call.stream;
  out["include_usage"] = call.include_usage;
  out["logprobs"] = call.logprobs;
  out["n_top_logprobs"] = call.request.n_top_logprobs;
  out["repeat_penalty"] = call.request.sampling.repeat_penalty;
  out["priority"] = call.request.priority;
  out["pause_at"] = call.request.pause_at ? json::value(*call.request.pause_at) : json::value();
  out["timeout_ms"] = call.request.timeout ? json::value(call.request.timeout->ms()) : json::value();
  out["session"] = call.fermata.session;
  out["client_id"] = call.fermata.client_id;
  out["idempotency_key"] = call.fermata.idempotency_key;
  out["on_new_message"] = number_of(call.fermata.on_new_message);
  out["on_pause"] = number_of(call.fermata.on_pause);
  out["on_disconnect"] = number_of(call.fermata.on_disconnect);
  json::array tags;
  for (const std::string& tag : call.fermata.tags) tags.emplace_back(tag);
  out["tags"] = tags;
  out["metadata"] = call.fermata.metadata;
  out["stream_events"] = call.fermata.stream_events;
  out["allow_partial"] = call.fermata.allow_partial;
  return out;
}

json::object cases() {
  std::ifstream file(FERMATA_CALL_CASES);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  auto value = parse_json(text);
  EXPECT_TRUE(value) << value.error().message << " " << value.error().detail;
  return value->get_object();
}

std::string text_of(const json::object& a_case, std::string_view key) {
  const json::value* value = a_case.if_contains(json::string_view(key.data(), key.size()));
  return value == nullptr ? "" : std::string(value->get_string().data(), value->get_string().size());
}

void check(Route route, const json::object& a_case) {
  json::object body = a_case.at("body").get_object();
  if (route == Route::kChat && !body.contains("messages"))
    body["messages"] = json::array{json::object{{"role", "user"}, {"content", "Hi"}}};
  if (route == Route::kCompletions && !body.contains("prompt")) body["prompt"] = "Hi";
  const std::string text = to_text(body);
  const auto call = parse_call(route, text);
  if (a_case.contains("field")) {
    ASSERT_FALSE(call) << text << " was accepted";
    EXPECT_EQ(call.error().field, text_of(a_case, "field")) << text << ": " << call.error().message;
    EXPECT_NE(call.error().message.find(text_of(a_case, "says")), std::string::npos)
        << text << ": " << call.error().message;
    return;
  }
  ASSERT_TRUE(call) << text << ": " << call.error().message;
  const json::object is = describe(*call);
  for (const auto& [key, expected] : a_case.at("gives").get_object()) {
    ASSERT_TRUE(is.contains(key)) << "call_cases.json expects an unknown " << key;
    EXPECT_EQ(to_text(is.at(key)), to_text(expected)) << text << ": " << key;
  }
}

// Each case: a body (messages or prompt are added where it has none), and either what the call `gives`, or the `field`
// that the refusal names and what its message `says`.
TEST(Call, Cases) {
  const json::object all = cases();
  std::size_t n = 0;
  for (const auto& [group, list] : all) {
    const bool is_chat = group != "completions";
    const bool is_completions = group != "chat";
    for (const json::value& a_case : list.get_array()) {
      if (is_chat) check(Route::kChat, a_case.get_object());
      if (is_completions) check(Route::kCompletions, a_case.get_object());
      ++n;
    }
  }
  EXPECT_GT(n, 100u);
}

TEST(Call, PromptOrMessagesAreRequired) {
  EXPECT_EQ(parse_call(Route::kChat, "{}").error().field, "messages");
  EXPECT_EQ(parse_call(Route::kCompletions, "{}").error().field, "prompt");
  EXPECT_EQ(parse_call(Route::kCompletions, R"({"prompt":null})").error().message, "prompt is required");
}

TEST(Call, AMisspelledFieldIsNotCalledMissing) {
  const auto call = parse_call(Route::kChat, R"({"mesages":[]})");
  ASSERT_FALSE(call);
  EXPECT_EQ(call.error().message, "there is no field mesages; did you mean messages?");
}

TEST(Call, ABodyMustBeAnObject) {
  for (const std::string_view body : {"[]", "1", "null", "\"x\"", "", "{", "{} x"})
    EXPECT_EQ(parse_call(Route::kChat, body).error().field, kWholeBody) << body;
}

// F9: a hostile depth is refused wherever it hides, before anything recurses into it.
TEST(Call, DepthIsBoundedEverywhere) {
  const std::string deep = std::string(5000, '[') + std::string(5000, ']');
  for (const std::string_view field :
       {"messages", "grammar", "json_schema", "response_format", "metadata", "fermata"}) {
    const auto call = parse_call(Route::kChat, "{\"" + std::string(field) + "\":" + deep + "}");
    ASSERT_FALSE(call);
    EXPECT_NE(call.error().message.find("deeper than"), std::string::npos) << call.error().message;
  }
}

// F8: parts are the string, token for token, so they must be it byte for byte.
TEST(Call, PartsCountAsTheirConcatenation) {
  const auto parts = parse_call(
      Route::kChat,
      R"({"messages":[{"role":"user","content":[{"type":"text","text":"a\n"},{"type":"text","text":" é"},{"type":"text","text":""}]}]})");
  const auto text = parse_call(Route::kChat, R"({"messages":[{"role":"user","content":"a\n é"}]})");
  ASSERT_TRUE(parts && text);
  EXPECT_EQ(parts->messages[0].content, text->messages[0].content);
}

TEST(Call, LargeListsAreBounded) {
  const auto with = [](std::string_view field, std::size_t n, std::string_view item) {
    std::string body = "{\"prompt\":\"x\",\"" + std::string(field) + "\":[" + std::string(item);
    for (std::size_t i = 1; i < n; ++i) body += "," + std::string(item);
    return parse_call(Route::kCompletions, body + "]}");
  };
  EXPECT_EQ(with("stop", limits::kStopStringsMax + 1, "\"a\"").error().code, Code::kTooLarge);
  EXPECT_TRUE(with("stop", limits::kStopStringsMax, "\"a\""));
  EXPECT_EQ(with("logit_bias", limits::kLogitBiasMax + 1, "[1,1]").error().code, Code::kTooLarge);
  EXPECT_EQ(with("dry_sequence_breakers", limits::kDryBreakersMax + 1, "\"a\"").error().code, Code::kTooLarge);
}

}  // namespace
}  // namespace fermata::api
