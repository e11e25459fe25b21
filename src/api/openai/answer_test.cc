#include "api/openai/answer.h"

#include <gtest/gtest.h>

#include <limits>

#include "api/openai/scripted_answer.h"
#include "base/utf8.h"

namespace fermata::api {
namespace {

using test::head;
using test::kVocabulary;

std::string bytes_of(const json::value& array) {
  std::string out;
  for (const json::value& byte : array.get_array()) out += static_cast<char>(byte.get_int64());
  return out;
}

// As a client would show the bytes.
std::string decoded(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const Utf8Unit unit = utf8_unit(bytes);
    out += unit.kind == Utf8Unit::Kind::kCharacter ? bytes.substr(0, unit.n_bytes) : kReplacementCharacter;
    bytes.remove_prefix(unit.n_bytes);
  }
  return out;
}

json::object answer_to(test::Script script, Route route, std::int32_t n_top) {
  script.n_top_logprobs = n_top;
  const auto events = test::play(script);
  AnswerHead with = head(route);
  with.logprobs = true;
  with.n_top_logprobs = n_top;
  FinishEvent end = test::end_of(events);
  if (finish_reason(end.reason) == nullptr) end.reason = EndReason::kStop;  // its text and rows, all the same
  return whole_answer(with, test::text_of(events), end, kVocabulary);
}

const json::object& choice_of(const json::object& answer) { return answer.at("choices").get_array()[0].get_object(); }

TEST(Answer, WholeChatCompletion) {
  const auto events = test::play({.say = {"Hi", "\"q\"\\", "\n"}, .n_tokens_max = 3});
  EXPECT_EQ(to_text(whole_answer(head(Route::kChat), test::text_of(events), test::end_of(events), kVocabulary)),
            R"({"id":"chatcmpl-1","object":"chat.completion","created":5,"model":"m","system_fingerprint":"fp",)"
            R"("choices":[{"index":0,"message":{"role":"assistant","content":"Hi\"q\"\\\n","refusal":null},)"
            R"("logprobs":null,"finish_reason":"length","fermata":{"end_reason":"length"}}],)"
            R"("usage":{"prompt_tokens":2,"completion_tokens":3,"total_tokens":5,)"
            R"("prompt_tokens_details":{"cached_tokens":0}},)"
            R"("fermata":{"generations":["gen_1"],"session":"s","seed":7}})");
}

TEST(Answer, WholeCompletion) {
  const auto events = test::play({.say = {"Hi", "\n"}, .stop = {"\n"}});
  EXPECT_EQ(to_text(whole_answer(head(Route::kCompletions), test::text_of(events), test::end_of(events), kVocabulary)),
            R"({"id":"cmpl-1","object":"text_completion","created":5,"model":"m","system_fingerprint":"fp",)"
            R"("choices":[{"index":0,"text":"Hi","logprobs":null,"finish_reason":"stop",)"
            R"("fermata":{"end_reason":"stop","stop_string":"\n"}}],)"
            R"("usage":{"prompt_tokens":2,"completion_tokens":2,"total_tokens":4,)"
            R"("prompt_tokens_details":{"cached_tokens":0}},)"
            R"("fermata":{"generations":["gen_1"],"session":"s","seed":7}})");
}

TEST(Answer, PausedIsReturnedOnlyWithItsRecord) {
  const auto events = test::play({.say = {"Hi"}});
  json::object record;
  record["pause_id"] = "pau_1";
  const json::object answer =
      paused_answer(head(Route::kChat), test::text_of(events), record, Usage{2, 1, 1}, kVocabulary);
  EXPECT_EQ(choice_of(answer).at("finish_reason"), "pause");
  EXPECT_EQ(to_text(choice_of(answer).at("pause")), R"({"pause_id":"pau_1"})");
  EXPECT_EQ(to_text(answer.at("fermata")), R"({"generations":["gen_1"],"session":"s","seed":7,"pauses":["pau_1"]})");
  EXPECT_EQ(to_text(answer.at("usage").at("prompt_tokens_details")), R"({"cached_tokens":1})");
}

// E7: joined "bytes" are the bytes of the text, whatever ended it.
TEST(Answer, JoinedBytesAreTheText) {
  for (const auto& [name, script] : test::scripts()) {
    for (const Route route : {Route::kChat, Route::kCompletions}) {
      const json::object answer = answer_to(script, route, 2);
      const json::object& choice = choice_of(answer);
      const json::object& logprobs = choice.at("logprobs").get_object();
      std::string bytes;
      if (route == Route::kChat)
        for (const json::value& entry : logprobs.at("content").get_array()) bytes += bytes_of(entry.at("bytes"));
      else
        for (const json::value& entry : logprobs.at("bytes").get_array()) bytes += bytes_of(entry);
      const json::value& text = route == Route::kChat ? choice.at("message").at("content") : choice.at("text");
      EXPECT_EQ(decoded(bytes), std::string_view(text.get_string())) << name;
    }
  }
}

TEST(Answer, EveryListOfTheOldFormHasOneEntryPerToken) {
  for (const auto& [name, script] : test::scripts()) {
    const json::object answer = answer_to(script, Route::kCompletions, 2);
    const json::object& logprobs = choice_of(answer).at("logprobs").get_object();
    const std::size_t n = logprobs.at("tokens").get_array().size();
    for (const char* list : {"token_logprobs", "top_logprobs", "text_offset", "bytes"})
      EXPECT_EQ(logprobs.at(list).get_array().size(), n) << name << " " << list;
  }
}

std::vector<std::string> tokens_of(const test::Script& script) {
  const json::object answer = answer_to(script, Route::kChat, 0);
  std::vector<std::string> out;
  for (const json::value& entry : choice_of(answer).at("logprobs").at("content").get_array())
    out.emplace_back(std::string_view(entry.at("token").get_string()));
  return out;
}

// The written rule about entries: those of which a byte is in the text, and control tokens inside it.
TEST(Answer, EntriesFollowTheRule) {
  using Tokens = std::vector<std::string>;
  EXPECT_EQ(tokens_of({.say = {"Hi", "a", "<end>"}}), (Tokens{"Hi", "a"})) << "no entry for the end of generation";
  EXPECT_EQ(tokens_of({.say = {"Hi", "<control>", "a", "<end>"}}), (Tokens{"Hi", "", "a"}));
  EXPECT_EQ(tokens_of({.say = {"Hi", " of P", "aris"}, .stop = {"Par"}}), (Tokens{"Hi", " of "})) << "cut";
  EXPECT_EQ(tokens_of({.say = {"Hi", "\n", "Us", "er:"}, .stop = {"\nUser:"}}), Tokens{"Hi"});
  EXPECT_EQ(tokens_of({.say = {"a", "\xF0\x9F"}, .n_tokens_max = 2}), Tokens{"a"}) << "an unfinished character";
  EXPECT_EQ(tokens_of({.say = {"a\xF0\x9F\x98"}, .n_tokens_max = 1}), Tokens{"a"});
  EXPECT_EQ(tokens_of({.say = {"\xF0\x9F", "\x98\x80", "x\xC3", "a"}, .n_tokens_max = 4}),
            (Tokens{"\\xf0\\x9f", "\\x98\\x80", "x\\xc3", "a"}))
      << "no U+FFFD that the model did not write";
}

TEST(Answer, ATokenThatIsCutShowsNoAlternatives) {
  const json::object answer = answer_to({.say = {"Hi", " of P", "aris"}, .stop = {"Par"}}, Route::kChat, 3);
  const json::array& content = choice_of(answer).at("logprobs").at("content").get_array();
  ASSERT_EQ(content.size(), 2u);
  EXPECT_EQ(content[0].at("top_logprobs").get_array().size(), 3u);
  EXPECT_EQ(content[0].at("top_logprobs").get_array()[0].at("token"), "Hi");
  EXPECT_TRUE(content[1].at("top_logprobs").get_array().empty());
  const std::string text = to_text(answer.at("choices").get_array()[0].at("logprobs"));
  EXPECT_EQ(text.find("of P\""), std::string::npos) << text;
}

TEST(Answer, TextOfSpecialTokensIsNeverShown) {
  const json::object answer = answer_to({.say = {"<control>", "a", "<end>"}}, Route::kChat, 20);
  EXPECT_EQ(to_text(answer).find("<special>"), std::string::npos);
}

TEST(Answer, OldFormCountsCharactersAndKeepsTheChosenToken) {
  const json::object answer =
      answer_to({.say = {"é", "\xF0\x9F", "\x98\x80", "\xFF", "a", "<end>"}}, Route::kCompletions, 1);
  const json::object& logprobs = choice_of(answer).at("logprobs").get_object();
  EXPECT_EQ(to_text(logprobs.at("tokens")), R"(["é","bytes:\\xf0\\x9f","bytes:\\x98\\x80","bytes:\\xff","a"])");
  EXPECT_EQ(to_text(logprobs.at("text_offset")), "[0,1,1,2,3]");
  std::size_t i = 0;
  for (const json::value& top : logprobs.at("top_logprobs").get_array())
    EXPECT_TRUE(top.get_object().contains(logprobs.at("tokens").get_array()[i++].get_string()));
}

TEST(Answer, LogprobsAreFiniteJson) {
  std::vector<JournalRow> rows(2);
  rows[0].logprob = -std::numeric_limits<float>::infinity();
  rows[1].logprob = -0.1f;
  Logprobs logprobs(Route::kCompletions, 0, kVocabulary);
  EXPECT_EQ(to_text(logprobs.next(rows, 0).at("token_logprobs")), "[-9999,-0.1]");
}

// A6: whoever reads the answer can tell a cut one from a whole one.
TEST(Answer, EndsMapToFinishReasonsOrErrors) {
  EXPECT_STREQ(finish_reason(EndReason::kStop), "stop");
  EXPECT_STREQ(finish_reason(EndReason::kLength), "length");
  EXPECT_STREQ(finish_reason(EndReason::kToolCalls), "tool_calls");
  EXPECT_STREQ(finish_reason(EndReason::kContentFilter), "content_filter");
  const struct {
    EndReason reason;
    int status;
    bool may_be_retried;
  } errors[] = {{EndReason::kCancelled, 409, false},
                {EndReason::kReplaced, 409, false},
                {EndReason::kTimeout, 504, false},
                {EndReason::kDisconnected, 409, false},
                {EndReason::kShutdown, 503, true}};
  for (const auto& [reason, status, may_be_retried] : errors) {
    ASSERT_EQ(finish_reason(reason), nullptr);
    FinishEvent end;
    end.reason = reason;
    end.n_generated = 3;
    const WireError wire = end_error(end);
    EXPECT_EQ(wire.status, status);
    EXPECT_EQ(wire.code, to_string(reason));
    EXPECT_EQ(wire.may_be_retried, may_be_retried);
    EXPECT_EQ(wire.fermata.at("end_reason"), json::string_view(to_string(reason)));
    EXPECT_EQ(wire.fermata.at("usage").at("completion_tokens"), 3);
    EXPECT_EQ(error_headers(wire).empty(), false);
  }
  FinishEvent end;
  end.reason = EndReason::kError;
  end.error = {Code::kGrammar, "no token", ""};
  const WireError failed = end_error(end);
  EXPECT_EQ(failed.status, 422);
  EXPECT_EQ(failed.code, "grammar");
  EXPECT_EQ(failed.fermata.at("end_reason"), "error");
}

TEST(TextCount, CountsAsJavaScriptAndPythonDoHoweverItIsCut) {
  const std::string text = "aé你😀\n👍🏽";
  TextCount whole;
  whole.add(text);
  EXPECT_EQ(whole.n_bytes, text.size());
  EXPECT_EQ(whole.n_utf16, 1u + 1 + 1 + 2 + 1 + 4);
  EXPECT_EQ(whole.n_chars, 1u + 1 + 1 + 1 + 1 + 2);
  TextCount bytewise;
  for (const char c : text) bytewise.add({&c, 1});
  EXPECT_EQ(bytewise.n_utf16, whole.n_utf16);
  EXPECT_EQ(bytewise.n_chars, whole.n_chars);
}

}  // namespace
}  // namespace fermata::api
