#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/openai/json.h"
#include "base/ids.h"
#include "base/result.h"
#include "engine/chat_template.h"
#include "generation/request.h"

namespace fermata::api {

enum class Route { kChat, kCompletions };

enum class OnPause { kDefault, kHold, kReturn };
enum class OnDisconnect { kDefault, kCancel, kPause, kContinue };
enum class OnNewMessage { kCancel, kPause, kQueue };

// The object `fermata` of a request; pause_at, timeout_ms and priority stand in Call::request.
struct FermataOptions {
  std::string session;  // empty: none; so with the ids
  std::string client_id;
  std::string idempotency_key;
  OnNewMessage on_new_message = OnNewMessage::kCancel;
  OnPause on_pause = OnPause::kDefault;
  OnDisconnect on_disconnect = OnDisconnect::kDefault;
  std::vector<std::string> tags;
  json::object metadata;
  bool stream_events = false;
  bool allow_partial = false;  // a pause may be returned with half a JSON text
};

// A request of the OpenAI routes, checked as far as that can be done without the model.
struct Call {
  Route route = Route::kChat;
  std::string model;  // empty: the one that is served

  // --- the prompt. kChat: messages; kCompletions: tokens, or else text.
  std::vector<ChatMessage> messages;  // roles system, user, assistant
  bool continues_last = false;        // the last message is the assistant's, and the answer goes on with it
  bool has_prompt_tokens = false;
  std::string prompt_text;
  std::vector<TokenId> prompt_tokens;

  Request request;                // all but the prompt, and the seed unless has_seed
  bool has_seed = false;          // else the caller draws one
  bool schema_is_format = false;  // response_format said the schema, not json_schema
  bool stream = false;
  bool include_usage = false;
  bool logprobs = false;  // request.n_top_logprobs may be 0 all the same
  FermataOptions fermata;
};

// The body of POST /v1/chat/completions or /v1/completions. Every field is enforced, known to be harmless, or refused
// with kInvalidArgument whose `field` names it (fields.h); so is one that nobody knows. Pure, thread-safe; linear in
// the body.
Result<Call> parse_call(Route route, std::string_view body);

}  // namespace fermata::api
