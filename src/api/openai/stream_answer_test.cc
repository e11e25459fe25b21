#include "api/openai/stream_answer.h"

#include <gtest/gtest.h>

#include "api/openai/scripted_answer.h"

namespace fermata::api {
namespace {

using test::head;
using test::kVocabulary;

// All of a stream, made from the events of a script.
std::string stream_of(const AnswerHead& with, const std::vector<Event>& events) {
  StreamAnswer answer(with, kVocabulary);
  std::string out = answer.begin();
  out += answer.keep_alive();
  for (const Event& event : events) {
    if (const auto* told = std::get_if<TextEvent>(&event.content)) out += answer.text(*told);
    if (const auto* told = std::get_if<FinishEvent>(&event.content)) out += answer.finish(*told);
  }
  return out;
}

// The data of each event; checks the form that every client can read.
std::vector<std::string> data_of(std::string_view stream) {
  std::vector<std::string> out;
  while (!stream.empty()) {
    const std::size_t end = stream.find("\n\n");
    EXPECT_NE(end, std::string_view::npos) << "an event that is not ended";
    if (end == std::string_view::npos) break;
    const std::string_view line = stream.substr(0, end);
    EXPECT_TRUE(line.starts_with("data: ")) << "no id:, retry:, event: or comment: " << line;
    EXPECT_EQ(line.find_first_of("\r\n"), std::string_view::npos) << line;
    EXPECT_GT(line.size(), 6u) << "an empty data";
    out.emplace_back(line.substr(6));
    stream.remove_prefix(end + 2);
  }
  EXPECT_FALSE(out.empty());
  EXPECT_TRUE(!out.empty() && out.back() == "[DONE]");
  return out;
}

bool is_allowed_in_delta(std::string_view key) {
  return key == "role" || key == "content" || key == "reasoning_content";
}

// WIRE section 2, line by line, of one event that is not [DONE].
void check_event(const std::string& data, const AnswerHead& with, bool is_last) {
  const auto value = parse_json(data);
  ASSERT_TRUE(value) << data;
  const json::object& event = value->get_object();
  if (const json::value* error = event.if_contains("error")) {
    EXPECT_TRUE(error->is_object()) << "\"error\": null";
    EXPECT_EQ(event.size(), 1u) << "error is the only key";
    EXPECT_TRUE(is_last) << "something follows the error";
    return;
  }
  EXPECT_EQ(event.at("id"), json::string_view(with.id));
  EXPECT_EQ(event.at("created"), with.created);
  EXPECT_EQ(event.at("model"), json::string_view(with.model));
  EXPECT_EQ(event.at("object"), with.route == Route::kChat ? "chat.completion.chunk" : "text_completion");
  for (const json::value& choice : event.at("choices").get_array()) {
    EXPECT_EQ(choice.at("index"), 0);
    EXPECT_TRUE(choice.get_object().contains("finish_reason"));
    if (with.route == Route::kCompletions) {
      EXPECT_TRUE(choice.at("text").is_string());
      continue;
    }
    for (const auto& [key, part] : choice.at("delta").get_object()) {
      EXPECT_TRUE(is_allowed_in_delta(key)) << "delta holds " << key;
      EXPECT_TRUE(part.is_string()) << data;
    }
  }
}

struct Heard {
  std::string text;
  std::string thought;
  json::array logprobs;  // entries of chat, or the lists' tokens
  std::string finish_reason;
  int n_finish = 0;
  int n_usage = 0;
  std::string error_code;
  json::object usage;
};

// As a client puts the chunks together.
Heard listen(const std::string& stream, const AnswerHead& with) {
  Heard heard;
  const auto events = data_of(stream);
  for (std::size_t i = 0; i + 1 < events.size(); ++i) {
    check_event(events[i], with, i + 2 == events.size());
    const auto value = parse_json(events[i]);
    if (!value) continue;  // check_event() has said so
    const json::object event = value->get_object();
    if (const json::value* error = event.if_contains("error")) {
      heard.error_code = std::string_view(error->at("code").get_string());
      continue;
    }
    if (const json::value* usage = event.if_contains("usage")) {
      ++heard.n_usage;
      EXPECT_TRUE(event.at("choices").get_array().empty());
      heard.usage = usage->get_object();
    }
    for (const json::value& choice : event.at("choices").get_array()) {
      const json::object& object = choice.get_object();
      if (!object.at("finish_reason").is_null()) {
        ++heard.n_finish;
        heard.finish_reason = std::string_view(object.at("finish_reason").get_string());
      }
      const json::value* text = object.if_contains("text");
      if (with.route == Route::kChat) {
        text = object.at("delta").get_object().if_contains("content");
        if (const json::value* thought = object.at("delta").get_object().if_contains("reasoning_content"))
          heard.thought += std::string_view(thought->get_string());
      }
      if (text != nullptr) heard.text += std::string_view(text->get_string());
      if (const json::value* logprobs = object.if_contains("logprobs"))
        for (const json::value& entry :
             logprobs->at(with.route == Route::kChat ? "content" : "text_offset").get_array())
          heard.logprobs.push_back(entry);
    }
  }
  return heard;
}

TEST(StreamAnswer, ChatByteForByte) {
  const auto events = test::play({.say = {"Hi", "\n", "<end>"}});
  EXPECT_EQ(
      stream_of(head(Route::kChat), events),
      R"(data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":5,"model":"m","system_fingerprint":"fp","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"fermata":{"generations":["gen_1"],"session":"s","seed":7}})"
      "\n\n"
      R"(data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":5,"model":"m","system_fingerprint":"fp","choices":[{"index":0,"delta":{},"finish_reason":null}]})"
      "\n\n"
      R"(data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":5,"model":"m","system_fingerprint":"fp","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]})"
      "\n\n"
      R"(data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":5,"model":"m","system_fingerprint":"fp","choices":[{"index":0,"delta":{"content":"\n"},"finish_reason":null}]})"
      "\n\n"
      R"(data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":5,"model":"m","system_fingerprint":"fp","choices":[{"index":0,"delta":{},"finish_reason":"stop","fermata":{"end_reason":"stop"}}]})"
      "\n\ndata: [DONE]\n\n");
}

TEST(StreamAnswer, CompletionsByteForByte) {
  const auto events = test::play({.say = {"Hi"}, .n_tokens_max = 1});
  AnswerHead with = head(Route::kCompletions);
  with.include_usage = true;
  with.session = with.system_fingerprint = "";
  EXPECT_EQ(
      stream_of(with, events),
      R"(data: {"id":"cmpl-1","object":"text_completion","created":5,"model":"m","choices":[{"index":0,"text":"","finish_reason":null}],"fermata":{"generations":["gen_1"],"seed":7}})"
      "\n\n"
      R"(data: {"id":"cmpl-1","object":"text_completion","created":5,"model":"m","choices":[{"index":0,"text":"","finish_reason":null}]})"
      "\n\n"
      R"(data: {"id":"cmpl-1","object":"text_completion","created":5,"model":"m","choices":[{"index":0,"text":"Hi","finish_reason":null}]})"
      "\n\n"
      R"(data: {"id":"cmpl-1","object":"text_completion","created":5,"model":"m","choices":[{"index":0,"text":"","finish_reason":"length","fermata":{"end_reason":"length"}}]})"
      "\n\n"
      R"(data: {"id":"cmpl-1","object":"text_completion","created":5,"model":"m","choices":[],"usage":{"prompt_tokens":2,"completion_tokens":1,"total_tokens":3,"prompt_tokens_details":{"cached_tokens":0}}})"
      "\n\ndata: [DONE]\n\n");
}

TEST(StreamAnswer, AnErrorEndsItExactlySo) {
  const auto events = test::play({.say = {"Hi"}, .end = EndReason::kReplaced});
  const std::string stream = stream_of(head(Route::kChat), events);
  EXPECT_TRUE(stream.ends_with(
      R"(data: {"error":{"message":"a new message of its session took the place of this generation","type":"invalid_request_error","code":"replaced","param":null,"fermata":{"end_reason":"replaced","usage":{"prompt_tokens":2,"completion_tokens":1,"total_tokens":3,"prompt_tokens_details":{"cached_tokens":0}}}}})"
      "\n\ndata: [DONE]\n\n"))
      << stream;
}

// Streamed = not streamed, in text, log-probabilities, usage and end, on both routes, with every option.
TEST(StreamAnswer, SaysWhatTheWholeAnswerSays) {
  for (const auto& [name, script] : test::scripts()) {
    for (const Route route : {Route::kChat, Route::kCompletions}) {
      for (const bool logprobs : {false, true}) {
        test::Script with_top = script;
        with_top.n_top_logprobs = logprobs ? 3 : 0;
        const auto events = test::play(with_top);
        AnswerHead with = head(route);
        with.logprobs = logprobs;
        with.n_top_logprobs = with_top.n_top_logprobs;
        with.include_usage = true;
        const Heard heard = listen(stream_of(with, events), with);
        const FinishEvent& end = test::end_of(events);
        EXPECT_EQ(heard.text, test::text_of(events).text) << name;
        EXPECT_EQ(to_text(heard.usage), to_text(usage_object(usage_of(end)))) << name;
        FinishEvent ended = end;
        if (finish_reason(end.reason) == nullptr) {
          EXPECT_EQ(heard.n_finish, 0) << name;
          EXPECT_EQ(heard.error_code, end_error(end).code) << name;
          ended.reason = EndReason::kStop;
        } else {
          EXPECT_EQ(heard.n_finish, 1) << name;
          EXPECT_EQ(heard.finish_reason, finish_reason(end.reason)) << name;
        }
        if (!logprobs) continue;
        const json::object whole = whole_answer(with, test::text_of(events), ended, kVocabulary);
        const json::value& expected = whole.at("choices").get_array()[0].at("logprobs");
        EXPECT_EQ(to_text(heard.logprobs), to_text(expected.at(route == Route::kChat ? "content" : "text_offset")))
            << name;
      }
    }
  }
}

// F2: one usage chunk when it was asked for, whatever ended it; none otherwise.
TEST(StreamAnswer, UsageComesOnceAndOnlyIfAskedFor) {
  for (const auto& [name, script] : test::scripts()) {
    for (const bool asked : {true, false}) {
      AnswerHead with = head(Route::kChat);
      with.include_usage = asked;
      const auto events = test::play(script);
      const Heard heard = listen(stream_of(with, events), with);
      EXPECT_EQ(heard.n_usage, asked ? 1 : 0) << name;
      if (!asked) continue;
      EXPECT_EQ(heard.usage.at("completion_tokens"), test::end_of(events).n_generated) << name;
    }
  }
}

TEST(StreamAnswer, PauseReturnedToWhoAskedForIt) {
  AnswerHead with = head(Route::kChat);
  with.include_usage = true;
  StreamAnswer answer(with, kVocabulary);
  json::object record;
  record["pause_id"] = "pau_1";
  std::string stream = answer.begin();
  stream += answer.pause_return(record, Usage{2, 0, 1});
  const Heard heard = listen(stream, with);
  EXPECT_EQ(heard.finish_reason, "pause");
  EXPECT_EQ(heard.n_usage, 1);
  const auto chunk = parse_json(data_of(stream)[1]);
  EXPECT_EQ(to_text(chunk->at("choices")),
            R"([{"index":0,"delta":{},"finish_reason":"pause","pause":{"pause_id":"pau_1"}}])");
  EXPECT_EQ(to_text(chunk->at("fermata")), R"({"pauses":["pau_1"]})");
}

TEST(StreamAnswer, EventsOnlyForWhoOptedIn) {
  AnswerHead with = head(Route::kChat);
  EXPECT_EQ(StreamAnswer(with, kVocabulary).event({.type = "paused"}), "");
  with.stream_events = true;
  StreamAnswer answer(with, kVocabulary);
  std::string stream = answer.begin();
  stream += answer.event({.type = "rewound", .seq = 4, .to_byte = 12, .to_utf16 = 10});
  stream += answer.fail(wire_error(Error{Code::kStale, "m", ""}));
  const Heard heard = listen(stream, with);
  EXPECT_EQ(heard.error_code, "stale");
  const auto chunk = parse_json(data_of(stream)[1]);
  EXPECT_EQ(to_text(chunk->at("choices")), R"([{"index":0,"delta":{},"finish_reason":null}])");
  EXPECT_EQ(to_text(chunk->at("fermata")), R"({"type":"rewound","seq":4,"index":0,"to_byte":12,"to_utf16":10})");
}

// A client adds numbers and joins strings of a delta: nothing of ours may be in it.
TEST(StreamAnswer, APauseIsToldWithItsIdBesideTheChoices) {
  AnswerHead with = head(Route::kChat);
  with.stream_events = true;
  StreamAnswer answer(with, kVocabulary);
  std::string stream = answer.begin();
  stream += answer.event({.type = "paused", .pause_id = "pau_1"});
  stream += answer.fail(wire_error(Error{Code::kStale, "m", ""}));
  const auto chunk = parse_json(data_of(stream)[1]);
  EXPECT_EQ(to_text(chunk->at("choices")), R"([{"index":0,"delta":{},"finish_reason":null}])");
  EXPECT_EQ(chunk->at("fermata").at("pause_id"), "pau_1");
}

TEST(StreamAnswer, RowsWithoutTextAreAChunkOnlyForLogprobs) {
  TextEvent event;
  event.rows.resize(1);
  event.rows[0].token = kVocabulary.control();
  StreamAnswer plain(head(Route::kChat), kVocabulary);
  (void)plain.begin();
  EXPECT_EQ(plain.text(event), "");
  AnswerHead with = head(Route::kChat);
  with.logprobs = true;
  StreamAnswer asked(with, kVocabulary);
  (void)asked.begin();
  EXPECT_NE(asked.text(event).find(R"("delta":{"content":""},"logprobs":{"content":[{)"), std::string::npos);
}

test::Script thinking() { return {.say = {"<think>", "\n", "Hi", "</th", "ink>", "\n", "a", "</th", "<end>"}}; }

TEST(StreamAnswer, AThoughtGoesOutAsReasoningContent) {
  for (const Route route : {Route::kChat, Route::kCompletions}) {
    AnswerHead with = head(route);
    with.thought = {"<think>", "</think>", false};
    with.logprobs = true;
    const auto events = test::play(thinking());
    const Heard heard = listen(stream_of(with, events), with);
    const json::object whole = whole_answer(with, test::text_of(events), test::end_of(events), kVocabulary);
    const json::object& choice = whole.at("choices").get_array()[0].get_object();
    if (route == Route::kCompletions) {
      EXPECT_EQ(heard.text, "<think>\nHi</think>\na</th");
      EXPECT_EQ(choice.at("text"), json::string_view(heard.text));
      continue;
    }
    EXPECT_EQ(heard.thought, "Hi");
    EXPECT_EQ(heard.text, "a</th");
    EXPECT_EQ(choice.at("message").at("content"), json::string_view(heard.text));
    EXPECT_EQ(choice.at("message").at("reasoning_content"), json::string_view(heard.thought));
    EXPECT_EQ(heard.logprobs.size(), 8u) << "every token has its entry, markers included";
  }
}

// A9: whoever comes back gets the rest: no gap, no repeat, wherever the line broke.
TEST(StreamAnswer, GoesOnAfterWhatAnEarlierOneSaid) {
  const auto events = test::play(thinking());
  AnswerHead with = head(Route::kChat);
  with.thought = {"<think>", "</think>", false};
  with.logprobs = true;
  const Heard whole = listen(stream_of(with, events), with);
  for (std::size_t cut = 0; cut + 1 < events.size(); ++cut) {
    StreamAnswer before(with, kVocabulary);
    StreamAnswer after(with, kVocabulary);
    std::string first = before.begin();
    std::string second = after.begin();
    for (std::size_t i = 0; i + 1 < events.size(); ++i) {
      const auto* told = std::get_if<TextEvent>(&events[i].content);
      if (told == nullptr) continue;
      if (i < cut) after.skip(*told);
      (i < cut ? first : second) += (i < cut ? before : after).text(*told);
    }
    second += after.finish(test::end_of(events));
    const Heard one = listen(first + "data: [DONE]\n\n", with);
    const Heard two = listen(second, with);
    EXPECT_EQ(one.text + two.text, whole.text) << cut;
    EXPECT_EQ(one.thought + two.thought, whole.thought) << cut;
    EXPECT_EQ(one.logprobs.size() + two.logprobs.size(), whole.logprobs.size()) << cut;
    EXPECT_EQ(after.sent().n_bytes, test::text_of(events).text.size());
  }
}

TEST(StreamAnswer, CountsWhatItSent) {
  StreamAnswer answer(head(Route::kChat), kVocabulary);
  (void)answer.begin();
  TextEvent event;
  event.text = "é😀";
  (void)answer.text(event);
  (void)answer.keep_alive();
  EXPECT_EQ(answer.sent().n_bytes, 6u);
  EXPECT_EQ(answer.sent().n_utf16, 3u);
}

}  // namespace
}  // namespace fermata::api
