#include <limits>
#include <utility>

#include "api/openai/call_parts.h"
#include "base/limits.h"

namespace fermata::api {
namespace {

// A message's content is read into one string: parts stand for their concatenation.
void read_part(const json::value& value, const std::string& path, Complaints& complaints, std::string& content) {
  if (!value.is_object())
    return complaints.add(
        {Code::kInvalidArgument, path + " must be an object; it is " + in_words(value), {}, false, path});
  FieldReader part(value.get_object(), path, complaints);
  const auto type = part.string("type", limits::kNameBytesMax);
  if (!type) return part.complain("type", "must be \"text\"");
  if (*type != "text") return part.complain("type", "is \"" + *type + "\"; only text parts are supported");
  const auto text = part.string("text", limits::kJsonBytesMax);
  if (!text) return part.complain("text", "must be a string");
  content += *text;
  part.ignore("cache_control");  // prefixes are found without
  part.refuse_unread();
}

void read_content(FieldReader& message, ChatMessage& out) {
  const json::value* value = message.any("content");
  if (value == nullptr)
    return message.complain(
        "content",
        out.role == "assistant"
            ? "must be a string or an array of text parts; null goes with tool_calls, which are not supported yet"
            : "must be a string or an array of text parts");
  if (value->is_string()) {
    out.content.assign(value->get_string().data(), value->get_string().size());
    return;
  }
  if (!value->is_array())
    return message.complain("content", "must be a string or an array of text parts; it is " + in_words(*value));
  const json::array& parts = value->get_array();
  if (parts.empty()) return message.complain("content", "must have at least one part");
  for (std::size_t i = 0; i < parts.size(); ++i)
    read_part(parts[i], message.path_of("content[" + std::to_string(i) + "]"), message.complaints(), out.content);
}

void read_role(FieldReader& message, ChatMessage& out) {
  static constexpr std::string_view kRoles[] = {"system", "developer", "user", "assistant"};
  const auto role = message.word("role", kRoles);
  if (!role) return message.complain("role", "must be \"system\", \"developer\", \"user\" or \"assistant\"");
  out.role = *role == 1 ? kRoles[0] : kRoles[*role];
}

// What clients send back of an assistant's message as they got it: fine as long as it says nothing.
void check_empty(FieldReader& message) {
  for (const std::string_view name : {"tool_calls", "annotations"}) {
    const json::array* list = message.array(name);
    if (list != nullptr && !list->empty()) message.complain(name, "is not supported yet");
  }
  for (const std::string_view name : {"function_call", "audio", "refusal", "tool_call_id"})
    if (message.any(name) != nullptr) message.complain(name, "is not supported");
}

ChatMessage read_message(const json::object& object, const std::string& path, Complaints& complaints) {
  FieldReader message(object, path, complaints);
  ChatMessage out;
  read_role(message, out);
  read_content(message, out);
  check_empty(message);
  message.ignore("name");               // no template shows it
  message.ignore("reasoning_content");  // a past thought is not shown to the model again
  message.refuse_unread();
  return out;
}

void read_continuation(FieldReader& body, Call& call) {
  call.continues_last = !call.messages.empty() && call.messages.back().role == "assistant";
  const auto continues = body.boolean("continue_final_message");
  const auto prompts = body.boolean("add_generation_prompt");
  if (continues && *continues != call.continues_last)
    body.complain("continue_final_message", call.continues_last
                                                ? "is false, but a final assistant message is always continued"
                                                : "needs a final assistant message");
  if (prompts && !*prompts && !call.continues_last)
    body.complain("add_generation_prompt", "may be false only with a final assistant message");
}

bool is_token(const json::value& value) {
  return value.is_int64() && value.get_int64() >= 0 && value.get_int64() <= std::numeric_limits<std::int32_t>::max();
}

void read_tokens(FieldReader& body, const json::array& tokens, Call& call) {
  if (tokens.size() > static_cast<std::size_t>(limits::kTokensMax))
    return body.too_large("prompt", tokens.size(), limits::kTokensMax, "tokens");
  call.has_prompt_tokens = true;
  call.prompt_tokens.reserve(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!is_token(tokens[i]))
      return body.complain("prompt[" + std::to_string(i) + "]", "must be a token id; it is " + in_words(tokens[i]));
    call.prompt_tokens.push_back(TokenId{static_cast<std::int32_t>(tokens[i].get_int64())});
  }
}

}  // namespace

void read_messages(FieldReader& body, Call& call) {
  const json::array* messages = body.array("messages");
  if (messages == nullptr) return body.refuse_missing("messages");
  if (messages->empty()) return body.complain("messages", "must have at least one message");
  if (messages->size() > limits::kMessagesMax)
    return body.too_large("messages", messages->size(), limits::kMessagesMax, "messages");
  for (std::size_t i = 0; i < messages->size(); ++i) {
    const std::string path = "messages[" + std::to_string(i) + "]";
    const json::value& message = (*messages)[i];
    if (!message.is_object()) return body.complain(path, "must be an object; it is " + in_words(message));
    call.messages.push_back(read_message(message.get_object(), path, body.complaints()));
  }
  read_continuation(body, call);
}

void read_prompt(FieldReader& body, Call& call) {
  const json::value* value = body.any("prompt");
  if (value == nullptr) return body.refuse_missing("prompt");
  if (value->is_array()) {
    const json::array& list = value->get_array();
    if (list.empty()) return body.complain("prompt", "must not be empty");
    if (is_token(list[0])) return read_tokens(body, list, call);
    if (list.size() > 1 && (list[0].is_string() || list[0].is_array()))
      return body.complain("prompt", "has several prompts; only one is supported yet");
    value = &list[0];
  }
  if (value->is_array()) return read_tokens(body, value->get_array(), call);
  if (!value->is_string())
    return body.complain("prompt", "must be a string or an array of token ids; it is " + in_words(*value));
  call.prompt_text.assign(value->get_string().data(), value->get_string().size());
}

}  // namespace fermata::api
