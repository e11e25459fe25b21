// Any bytes as the body of a request: refused with a field and a message that can be sent, or a call that keeps what
// the rest of the server relies on. What was parsed, written and parsed again is the same.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "api/openai/call.h"
#include "api/openai/http_error.h"
#include "base/limits.h"
#include "base/utf8.h"

namespace {

using namespace fermata;
using api::Call;
using api::Route;

void require(bool holds) {
  if (!holds) std::abort();
}

// A name may go out in a header.
void require_name(std::string_view name) {
  require(is_utf8(name) && name.size() <= limits::kNameBytesMax);
  for (const char c : name) require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
}

void look_at(const Call& call) {
  require(call.route == Route::kChat ? !call.messages.empty() : call.messages.empty());
  for (const ChatMessage& message : call.messages) {
    require(message.role == "system" || message.role == "user" || message.role == "assistant");
    require(is_utf8(message.content));
  }
  require(!call.continues_last || call.messages.back().role == "assistant");
  require(call.prompt_tokens.empty() || (call.has_prompt_tokens && call.prompt_text.empty()));
  for (const std::string& stop : call.request.stop) require(!stop.empty() && is_utf8(stop));
  require(call.request.stop.size() <= limits::kStopStringsMax && call.request.n_tokens_max >= -1);
  require(call.request.n_top_logprobs >= 0 && call.request.n_top_logprobs <= limits::kTopLogprobsMax);
  require(call.request.sampling.grammar.empty() || call.request.sampling.json_schema.empty());
  require(call.stream || (!call.include_usage && !call.fermata.stream_events));
  for (const auto* name : {&call.model, &call.fermata.session, &call.fermata.client_id, &call.fermata.idempotency_key})
    require_name(*name);
  for (const std::string& tag : call.fermata.tags) require_name(tag);
}

void look_at(const Error& error) {
  require(!error.message.empty() && is_utf8(error.message) && !error.field.empty());
  require(api::http_status(error) == 400 || api::http_status(error) == 413);
  require(api::parse_json(api::to_text(api::error_object(error))).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  for (const Route route : {Route::kChat, Route::kCompletions}) {
    const auto call = api::parse_call(route, body);
    if (call)
      look_at(*call);
    else
      look_at(call.error());
  }
  const auto value = api::parse_json(body);
  if (!value) return 0;
  const std::string text = api::to_text(*value);
  const auto again = api::parse_json(text);
  require(again.has_value() && api::to_text(*again) == text);
  return 0;
}
