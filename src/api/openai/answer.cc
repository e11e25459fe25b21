#include "api/openai/answer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"
#include "generation/fold.h"

namespace fermata::api {
namespace {

json::string_view view(std::string_view text) { return {text.data(), text.size()}; }

json::array byte_array(std::string_view bytes) {
  json::array out;
  out.reserve(bytes.size());
  for (const char c : bytes) out.emplace_back(static_cast<std::int64_t>(static_cast<unsigned char>(c)));
  return out;
}

json::object base_object(const AnswerHead& head) {
  json::object out;
  out["id"] = head.id;
  out["object"] = head.route == Route::kChat ? "chat.completion" : "text_completion";
  out["created"] = head.created;
  out["model"] = head.model;
  if (!head.system_fingerprint.empty()) out["system_fingerprint"] = head.system_fingerprint;
  return out;
}

json::object choice_object(const AnswerHead& head, const AnswerText& text, const Vocabulary& vocabulary) {
  json::object choice;
  choice["index"] = 0;
  if (head.route == Route::kChat) {
    json::object message;
    ThoughtSplit split = thought_split(head);
    ThoughtSplit::Parts parts = split.push(text.text);
    const ThoughtSplit::Parts rest = split.finish();
    message["role"] = "assistant";
    message["content"] = parts.answer + rest.answer;
    if (!(parts.thought + rest.thought).empty()) message["reasoning_content"] = parts.thought + rest.thought;
    message["refusal"] = nullptr;
    choice["message"] = std::move(message);
  } else {
    choice["text"] = text.text;
  }
  choice["logprobs"] = nullptr;
  if (head.logprobs) {
    Logprobs logprobs(head.route, head.n_top_logprobs, vocabulary);
    choice["logprobs"] = logprobs.next(text.rows, text.n_bytes_cut);
  }
  return choice;
}

json::object with_choice(const AnswerHead& head, json::object choice, const Usage& usage, json::object fermata) {
  json::object out = base_object(head);
  json::array choices;
  choices.push_back(std::move(choice));
  out["choices"] = std::move(choices);
  out["usage"] = usage_object(usage);
  out["fermata"] = std::move(fermata);
  return out;
}

struct EndWords {
  int status;
  std::string_view type;
  std::string_view message;
  bool may_be_retried;
};

// Ends that cut an answer short, other than by an error.
EndWords words_of(EndReason reason) {
  switch (reason) {
    case EndReason::kCancelled: return {409, "invalid_request_error", "the generation was cancelled", false};
    case EndReason::kReplaced:
      return {409, "invalid_request_error", "a new message of its session took the place of this generation", false};
    case EndReason::kTimeout: return {504, "server_error", "the generation was ended by a time limit", false};
    case EndReason::kDisconnected:
      return {409, "invalid_request_error", "the generation was ended because its client went away", false};
    case EndReason::kShutdown: return {503, "server_error", "the server is stopping; ask again", true};
    default: break;
  }
  FERMATA_CHECK(false);
  return {};
}

}  // namespace

void TextCount::add(std::string_view utf8) {
  n_bytes += utf8.size();
  for (const char c : utf8) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0) == 0x80) continue;  // goes on with a character that is counted
    ++n_chars;
    n_utf16 += byte >= 0xF0 ? 2 : 1;
  }
}

Usage usage_of(const FinishEvent& end) { return {end.n_prompt, end.n_cached, end.n_generated}; }

json::object usage_object(const Usage& usage) {
  json::object details;
  details["cached_tokens"] = usage.n_cached;
  json::object out;
  out["prompt_tokens"] = usage.n_prompt;
  out["completion_tokens"] = usage.n_generated;
  out["total_tokens"] = usage.n_prompt + usage.n_generated;
  out["prompt_tokens_details"] = std::move(details);
  return out;
}

ThoughtSplit thought_split(const AnswerHead& head) {
  return ThoughtSplit(head.route == Route::kChat ? head.thought : ThoughtMarkers{});
}

void AnswerText::add(const TextEvent& event) {
  text += event.text;
  rows.insert(rows.end(), event.rows.begin(), event.rows.end());
  if (!event.rows.empty()) n_bytes_cut = event.n_bytes_cut;
}

void AnswerText::take_back(const RewindEvent& event) {
  text.resize(std::min(text.size(), event.n_text_bytes));
  rows.resize(std::min(rows.size(), static_cast<std::size_t>(event.n_rows - event.n_prompt)));
}

std::string bytes_as_text(std::string_view bytes) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  while (!bytes.empty()) {
    const Utf8Unit unit = utf8_unit(bytes);
    if (unit.kind == Utf8Unit::Kind::kCharacter) {
      out += bytes.substr(0, unit.n_bytes);
    } else {
      for (const char c : bytes.substr(0, unit.n_bytes)) {
        const auto byte = static_cast<unsigned char>(c);
        out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
      }
    }
    bytes.remove_prefix(unit.n_bytes);
  }
  return out;
}

double logprob_number(float logprob) {
  constexpr double kImpossible = -9999;
  if (!std::isfinite(logprob)) return kImpossible;
  std::array<char, 32> digits;  // 0.1f is sent as 0.1
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), logprob).ptr;
  double result = 0;
  std::from_chars(digits.data(), end, result);
  return result;
}

Logprobs::Logprobs(Route route, std::int32_t n_top, const Vocabulary& vocabulary, std::size_t first_text_offset)
    : route_(route), n_top_(n_top), vocabulary_(&vocabulary), n_chars_(first_text_offset) {}

json::object Logprobs::next(std::span<const JournalRow> rows, std::size_t n_bytes_cut) {
  return route_ == Route::kChat ? next_content(rows, n_bytes_cut) : next_lists(rows, n_bytes_cut);
}

std::string_view Logprobs::shown_bytes(std::span<const JournalRow> rows, std::size_t i, std::size_t n_bytes_cut) const {
  std::string_view bytes = text_bytes(*vocabulary_, rows[i].token);
  if (i + 1 < rows.size()) return bytes;
  FERMATA_CHECK(n_bytes_cut <= bytes.size());
  return bytes.substr(0, bytes.size() - n_bytes_cut);
}

std::string Logprobs::shown(std::string_view bytes) const {
  const bool is_marked = route_ == Route::kCompletions && !is_utf8(bytes);
  return (is_marked ? "bytes:" : "") + bytes_as_text(bytes);
}

void Logprobs::count(std::string_view bytes) {
  unfinished_ += bytes;
  std::string_view left = unfinished_;
  while (!left.empty()) {
    const Utf8Unit unit = utf8_unit(left);
    if (unit.kind == Utf8Unit::Kind::kUnfinished) break;
    ++n_chars_;
    left.remove_prefix(unit.n_bytes);
  }
  unfinished_.erase(0, unfinished_.size() - left.size());
}

json::object Logprobs::next_content(std::span<const JournalRow> rows, std::size_t n_bytes_cut) const {
  const auto entry_of = [this](std::string_view bytes, float logprob) {
    json::object entry;
    entry["token"] = shown(bytes);
    entry["logprob"] = logprob_number(logprob);
    entry["bytes"] = byte_array(bytes);
    return entry;
  };
  json::array content;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    json::object entry = entry_of(shown_bytes(rows, i, n_bytes_cut), rows[i].logprob);
    json::array top;
    const bool is_cut = i + 1 == rows.size() && n_bytes_cut > 0;
    if (n_top_ > 0 && !is_cut)
      for (const TokenLogprob& other : rows[i].top)
        top.push_back(entry_of(text_bytes(*vocabulary_, other.token), other.logprob));
    entry["top_logprobs"] = std::move(top);
    content.push_back(std::move(entry));
  }
  json::object out;
  out["content"] = std::move(content);
  out["refusal"] = nullptr;
  return out;
}

json::object Logprobs::next_lists(std::span<const JournalRow> rows, std::size_t n_bytes_cut) {
  json::array tokens, numbers, tops, offsets, bytes_of_rows;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string_view bytes = shown_bytes(rows, i, n_bytes_cut);
    const std::string token = shown(bytes);
    tokens.emplace_back(token);
    numbers.emplace_back(logprob_number(rows[i].logprob));
    offsets.emplace_back(n_chars_);
    bytes_of_rows.push_back(byte_array(bytes));
    json::object top;
    if (i + 1 < rows.size() || n_bytes_cut == 0) {
      for (const TokenLogprob& other : rows[i].top)
        top.emplace(view(shown(text_bytes(*vocabulary_, other.token))), logprob_number(other.logprob));
      top.emplace(view(token), logprob_number(rows[i].logprob));  // the chosen one is always there
    }
    tops.push_back(std::move(top));
    count(bytes);
  }
  json::object out;
  out["tokens"] = std::move(tokens);
  out["token_logprobs"] = std::move(numbers);
  out["top_logprobs"] = nullptr;
  if (n_top_ > 0) out["top_logprobs"] = std::move(tops);
  out["text_offset"] = std::move(offsets);
  out["bytes"] = std::move(bytes_of_rows);
  return out;
}

const char* finish_reason(EndReason reason) {
  switch (reason) {
    case EndReason::kStop: return "stop";
    case EndReason::kLength: return "length";
    case EndReason::kToolCalls: return "tool_calls";
    case EndReason::kContentFilter: return "content_filter";
    case EndReason::kNone:
    case EndReason::kCancelled:
    case EndReason::kReplaced:
    case EndReason::kTimeout:
    case EndReason::kDisconnected:
    case EndReason::kShutdown:
    case EndReason::kError: return nullptr;
  }
  return nullptr;
}

WireError end_error(const FinishEvent& end) {
  FERMATA_CHECK(finish_reason(end.reason) == nullptr && end.reason != EndReason::kNone);
  json::object fermata = end_object(end);
  fermata["usage"] = usage_object(usage_of(end));
  if (end.reason == EndReason::kError) return wire_error(end.error, std::move(fermata));
  const EndWords words = words_of(end.reason);
  WireError wire;
  wire.status = words.status;
  wire.type = words.type;
  wire.code = to_string(end.reason);
  wire.message = words.message;
  if (!end.error.message.empty()) wire.message += ": " + end.error.message;
  wire.fermata = std::move(fermata);
  wire.may_be_retried = words.may_be_retried;
  if (words.may_be_retried) wire.retry_after_s = 1;
  return wire;
}

json::object fermata_object(const AnswerHead& head) {
  json::object out;
  out["generations"] = json::array{json::value(view(head.generation_id))};
  if (!head.session.empty()) out["session"] = head.session;
  out["seed"] = head.seed;
  return out;
}

json::object end_object(const FinishEvent& end) {
  json::object out;
  out["end_reason"] = view(to_string(end.reason));
  if (!end.stop_string.empty()) out["stop_string"] = end.stop_string;
  return out;
}

json::object whole_answer(const AnswerHead& head, const AnswerText& text, const FinishEvent& end,
                          const Vocabulary& vocabulary) {
  const char* reason = finish_reason(end.reason);
  FERMATA_CHECK(reason != nullptr);
  json::object choice = choice_object(head, text, vocabulary);
  choice["finish_reason"] = reason;
  choice["fermata"] = end_object(end);
  return with_choice(head, std::move(choice), usage_of(end), fermata_object(head));
}

json::object paused_answer(const AnswerHead& head, const AnswerText& text, json::object pause_record,
                           const Usage& usage, const Vocabulary& vocabulary) {
  json::object choice = choice_object(head, text, vocabulary);
  json::object fermata = fermata_object(head);
  fermata["pauses"] = pauses_of(pause_record);
  choice["finish_reason"] = "pause";
  choice["pause"] = std::move(pause_record);
  return with_choice(head, std::move(choice), usage, std::move(fermata));
}

json::array pauses_of(const json::object& pause_record) {
  const json::value* id = pause_record.if_contains("pause_id");
  return id == nullptr ? json::array() : json::array{*id};
}

}  // namespace fermata::api
