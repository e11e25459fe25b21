#include "api/openai/stream_answer.h"

#include <utility>

#include "base/check.h"

namespace fermata::api {
namespace {

constexpr std::string_view kDone = "data: [DONE]\n\n";

std::string chunk_prefix(const AnswerHead& head) {
  std::string out = "data: {\"id\":";
  append_quoted(out, head.id);
  out += head.route == Route::kChat ? R"(,"object":"chat.completion.chunk","created":)"
                                    : R"(,"object":"text_completion","created":)";
  out += std::to_string(head.created) + ",\"model\":";
  append_quoted(out, head.model);
  if (!head.system_fingerprint.empty()) {
    out += ",\"system_fingerprint\":";
    append_quoted(out, head.system_fingerprint);
  }
  return out + ",\"choices\":[";
}

std::string error_event(const WireError& error) {
  std::string out = "data: " + to_text(error_object(error)) + "\n\n";
  out += kDone;
  return out;
}

}  // namespace

StreamAnswer::StreamAnswer(AnswerHead head, const Vocabulary& vocabulary)
    : head_(std::move(head)),
      vocabulary_(&vocabulary),
      logprobs_(head_.route, head_.n_top_logprobs, vocabulary),
      split_(thought_split(head_)),
      prefix_(chunk_prefix(head_)) {}

std::string StreamAnswer::chunk(const Parts& parts) const {
  std::string out;
  out.reserve(prefix_.size() + parts.text.size() + parts.logprobs.size() + parts.in_choice.size() + parts.top.size() +
              128);
  out += prefix_;
  out += "{\"index\":0,";
  if (head_.route == Route::kCompletions) {
    out += "\"text\":";
    append_quoted(out, parts.text);
  } else {
    out += "\"delta\":{";
    if (parts.has_role) out += R"("role":"assistant",)";
    if (!parts.thought.empty()) {
      out += R"("reasoning_content":)";
      append_quoted(out, parts.thought);
      if (parts.has_text) out += ',';
    }
    if (parts.has_text) {
      out += R"("content":)";
      append_quoted(out, parts.text);
    }
    out += '}';
  }
  if (!parts.logprobs.empty()) {
    out += ",\"logprobs\":";
    out += parts.logprobs;
  }
  out += ",\"finish_reason\":";
  if (parts.finish_reason.empty())
    out += "null";
  else
    append_quoted(out, parts.finish_reason);
  out += parts.in_choice;
  out += "}]";
  out += parts.top;
  out += "}\n\n";
  return out;
}

std::string StreamAnswer::usage_chunk(const Usage& usage) const {
  if (!head_.include_usage) return {};
  return prefix_ + "],\"usage\":" + to_text(usage_object(usage)) + "}\n\n";
}

void StreamAnswer::end() {
  FERMATA_CHECK(has_begun_ && !has_ended_);
  has_ended_ = true;
}

std::string StreamAnswer::begin() {
  FERMATA_CHECK(!has_begun_);
  has_begun_ = true;
  return chunk({.has_role = true, .has_text = true, .top = ",\"fermata\":" + to_text(fermata_object(head_))});
}

std::string StreamAnswer::text(const TextEvent& event) {
  FERMATA_CHECK(has_begun_ && !has_ended_);
  const bool has_rows = head_.logprobs && !event.rows.empty();
  sent_.add(event.text);
  n_rows_sent_ += event.rows.size();
  const ThoughtSplit::Parts parts = split_.push(event.text);
  if (parts.answer.empty() && parts.thought.empty() && !has_rows) return {};
  std::string logprobs;
  if (has_rows) logprobs = to_text(logprobs_.next(event.rows, event.n_bytes_cut));
  return chunk({.has_text = !parts.answer.empty() || parts.thought.empty(),
                .text = parts.answer,
                .thought = parts.thought,
                .logprobs = std::move(logprobs)});
}

void StreamAnswer::skip(const TextEvent& event) {
  FERMATA_CHECK(has_begun_ && !has_ended_);
  sent_.add(event.text);
  n_rows_sent_ += event.rows.size();
  (void)split_.push(event.text);
  if (head_.logprobs) (void)logprobs_.next(event.rows, event.n_bytes_cut);
}

std::string StreamAnswer::rest() {
  const ThoughtSplit::Parts parts = split_.finish();
  if (parts.answer.empty() && parts.thought.empty()) return {};
  return chunk({.has_text = !parts.answer.empty(), .text = parts.answer, .thought = parts.thought});
}

std::string StreamAnswer::keep_alive() const { return chunk({}); }

std::string StreamAnswer::event(const Notice& notice) const {
  if (!head_.stream_events) return {};
  json::object fermata;
  fermata["type"] = json::string_view(notice.type.data(), notice.type.size());
  fermata["seq"] = notice.seq;
  fermata["index"] = 0;
  fermata["to_byte"] = notice.to_byte;
  fermata["to_utf16"] = notice.to_utf16;
  if (!notice.pause_id.empty()) fermata["pause_id"] = notice.pause_id;
  return chunk({.top = ",\"fermata\":" + to_text(fermata)});
}

StreamAnswer::Rewound StreamAnswer::rewind(const AnswerText& left, std::uint64_t seq) {
  const bool takes_back = sent_.n_bytes > left.text.size() || (head_.logprobs && n_rows_sent_ > left.rows.size());
  if (takes_back && !head_.stream_events) {
    WireError error;
    error.status = 409;
    error.type = "invalid_request_error";
    error.code = "rewound";
    error.message = "an edit took back text that was sent; with fermata.stream_events a stream tells of it and goes on";
    return {fail(error), true};
  }
  sent_ = {};
  n_rows_sent_ = 0;
  split_ = thought_split(head_);
  logprobs_ = Logprobs(head_.route, head_.n_top_logprobs, *vocabulary_);
  skip({left.text, 0, left.rows, 0});
  return {event({"rewound", seq, sent_.n_bytes, sent_.n_utf16}), false};
}

std::string StreamAnswer::finish(const FinishEvent& finish) {
  end();
  const Usage usage = usage_of(finish);
  const char* reason = finish_reason(finish.reason);
  std::string out = rest();
  if (reason == nullptr) return out + usage_chunk(usage) + error_event(end_error(finish));
  out += chunk({.finish_reason = reason, .in_choice = ",\"fermata\":" + to_text(end_object(finish))});
  out += usage_chunk(usage);
  out += kDone;
  return out;
}

std::string StreamAnswer::pause_return(const json::object& pause_record, const Usage& usage) {
  end();
  json::object fermata;
  fermata["pauses"] = pauses_of(pause_record);
  std::string out = chunk({.finish_reason = "pause",
                           .in_choice = ",\"pause\":" + to_text(pause_record),
                           .top = ",\"fermata\":" + to_text(fermata)});
  out += usage_chunk(usage);
  out += kDone;
  return out;
}

std::string StreamAnswer::fail(const WireError& error) {
  end();
  return error_event(error);
}

}  // namespace fermata::api
