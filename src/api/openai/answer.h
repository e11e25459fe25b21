#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/openai/call.h"
#include "api/openai/http_error.h"
#include "api/openai/json.h"
#include "api/openai/thought.h"
#include "engine/vocabulary.h"
#include "generation/event.h"

namespace fermata::api {

// What all chunks of a stream, or the whole answer, say alike.
struct AnswerHead {
  Route route = Route::kChat;
  std::string id;  // chatcmpl-… or cmpl-…
  std::string model;
  std::string generation_id;  // gen_…
  std::string session;        // empty: none
  std::string system_fingerprint;
  std::int64_t created = 0;  // s since 1970
  std::uint64_t seed = 0;    // the one in force
  bool logprobs = false;
  std::int32_t n_top_logprobs = 0;
  bool include_usage = false;
  bool stream_events = false;
  ThoughtMarkers thought = {};  // of chat: what lies between goes out as reasoning_content
};

// Of a text that comes in pieces; the pieces may be cut anywhere.
struct TextCount {
  std::size_t n_bytes = 0;
  std::size_t n_utf16 = 0;  // units, as JavaScript counts
  std::size_t n_chars = 0;  // code points, as Python counts
  void add(std::string_view utf8);
};

struct Usage {
  Position n_prompt = 0;
  Position n_cached = 0;
  Position n_generated = 0;  // tokens really decoded: those of a stop string and the end of generation too
};
Usage usage_of(const FinishEvent& end);
json::object usage_object(const Usage& usage);

// The one that an answer of this head needs: there are no thoughts in a plain completion.
ThoughtSplit thought_split(const AnswerHead& head);

// All the text that came, and its rows.
struct AnswerText {
  std::string text;
  std::vector<JournalRow> rows;
  std::size_t n_bytes_cut = 0;
  void add(const TextEvent& event);
  void take_back(const RewindEvent& event);
};

// What `token` says of these bytes of a token: the text itself, or, where it is no UTF-8, its ill-formed bytes as \xNN.
std::string bytes_as_text(std::string_view bytes);
// JSON has no infinity, and OpenAI says -9999 for what cannot be; else the shortest decimal that is this float.
double logprob_number(float logprob);

// Makes the `logprobs` of a choice in the form of its route, from rows that come in order. One entry per token of which
// at least a byte is in the text, and one without bytes per control token inside it; none for the end of generation,
// nor for what a stop string, a filter or an unfinished character at the end took away. The bytes of all entries,
// joined, are those of the text: ill-formed ones as the model wrote them where the text has U+FFFD, and without those
// that the prompt began the first character with. A token that is cut shows only what is left of it, and no
// alternatives, since they may spell what was taken away. A token that is no UTF-8 shows its bytes as \xNN, after
// "bytes:" on the route of completions. Their `text_offset` counts the characters that are complete before a token.
class Logprobs {
 public:
  Logprobs(Route route, std::int32_t n_top, const Vocabulary& vocabulary, std::size_t first_text_offset = 0);
  // For the next rows; the last n_bytes_cut bytes of the last one are not in the text.
  json::object next(std::span<const JournalRow> rows, std::size_t n_bytes_cut);

 private:
  json::object next_content(std::span<const JournalRow> rows, std::size_t n_bytes_cut) const;
  json::object next_lists(std::span<const JournalRow> rows, std::size_t n_bytes_cut);
  std::string_view shown_bytes(std::span<const JournalRow> rows, std::size_t i, std::size_t n_bytes_cut) const;
  std::string shown(std::string_view bytes) const;
  void count(std::string_view bytes);

  Route route_;
  std::int32_t n_top_;
  const Vocabulary* vocabulary_;
  std::size_t n_chars_;     // complete before the next row
  std::string unfinished_;  // 0 to 3 bytes
};

// OpenAI's finish_reason: "stop", "length", "tool_calls", "content_filter"; nullptr if this end is an error to whoever
// waits for the answer, since all but these cut it short, and a client must be able to tell.
const char* finish_reason(EndReason reason);
// The error that such an end is: code = our end reason. Usage and stop cause stand in its `fermata`.
// Precondition: finish_reason(end.reason) is nullptr.
WireError end_error(const FinishEvent& end);

// {"generations": […], "session", "seed"}
json::object fermata_object(const AnswerHead& head);
// {"end_reason", "stop_string"?}: the `fermata` of a choice that ended.
json::object end_object(const FinishEvent& end);

// ["pau_…"], as `fermata.pauses` of what ends with a pause.
json::array pauses_of(const json::object& pause_record);

// 200: the whole completion. Precondition: finish_reason(end.reason) is not nullptr.
json::object whole_answer(const AnswerHead& head, const AnswerText& text, const FinishEvent& end,
                          const Vocabulary& vocabulary);
// 200 with finish_reason "pause", for who opted in.
json::object paused_answer(const AnswerHead& head, const AnswerText& text, json::object pause_record,
                           const Usage& usage, const Vocabulary& vocabulary);

}  // namespace fermata::api
