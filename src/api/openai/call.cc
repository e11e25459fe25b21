#include "api/openai/call.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "api/openai/call_parts.h"
#include "api/openai/fields.h"
#include "base/limits.h"
#include "base/nearest.h"

namespace fermata::api {
namespace {

constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();

bool is_neutral(const Field& field, const json::value& value) {
  const std::string text = to_text(value);
  std::string_view left = field.neutral;
  while (!left.empty()) {
    const std::size_t end = std::min(left.find('|'), left.size());
    if (left.substr(0, end) == text) return true;
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return false;
}

bool is_nested(const Field& field) { return field.name.find('.') != std::string_view::npos; }

// What the table alone decides.
void apply_table(FieldReader& body, Route route) {
  for (const Field& field : fields()) {
    if (!is_on(field, route) || is_nested(field)) continue;
    if (field.treatment == Treatment::kHarmless) body.ignore(field.name);
    if (field.treatment != Treatment::kRefused) continue;
    const json::value* value = body.any(field.name);
    if (value != nullptr && !is_neutral(field, *value))
      body.complain(field.name, "is not supported: " + std::string(field.note), "it is " + in_words(*value));
  }
}

// One number under several names: all that are there must agree.
std::optional<std::int64_t> read_alike(FieldReader& body, std::span<const std::string_view> names, std::int64_t least,
                                       std::int64_t most) {
  std::optional<std::int64_t> found;
  std::string_view found_as;
  for (const std::string_view name : names) {
    const auto number = body.integer(name, least, most);
    if (!number) continue;
    if (found && *found != *number)
      body.complain(name, "and " + std::string(found_as) + " are given with different values; give one",
                    std::to_string(*number) + " and " + std::to_string(*found));
    found = number;
    found_as = name;
  }
  return found;
}

void read_stop(FieldReader& body, Call& call) {
  const json::value* value = body.any("stop");
  if (value == nullptr) return;
  const json::array one{*value};
  if (!value->is_string() && !value->is_array())
    return body.complain("stop", "must be a string or an array of strings; it is " + in_words(*value));
  const json::array& stops = value->is_array() ? value->get_array() : one;
  if (stops.size() > limits::kStopStringsMax)
    return body.too_large("stop", stops.size(), limits::kStopStringsMax, "strings");
  for (std::size_t i = 0; i < stops.size(); ++i) {
    const std::string name = value->is_array() ? "stop[" + std::to_string(i) + "]" : "stop";
    if (!stops[i].is_string()) return body.complain(name, "must be a string; it is " + in_words(stops[i]));
    const json::string& stop = stops[i].get_string();
    if (stop.empty()) return body.complain(name, "must not be empty");
    if (stop.size() > limits::kStopStringBytesMax)
      return body.too_large(name, stop.size(), limits::kStopStringBytesMax, "bytes");
    call.request.stop.emplace_back(stop.data(), stop.size());
  }
}

void read_length(FieldReader& body, Call& call) {
  static constexpr std::string_view kNames[] = {"max_tokens", "max_completion_tokens", "n_predict"};
  if (const auto n = read_alike(body, kNames, -1, kInt32Max)) call.request.n_tokens_max = static_cast<std::int32_t>(*n);
}

void read_stream(FieldReader& body, Call& call) {
  call.stream = body.boolean("stream").value_or(false);
  const json::object* object = body.object("stream_options");
  if (object == nullptr) return;
  if (!call.stream) return body.complain("stream_options", "is only allowed with stream: true");
  FieldReader options(*object, "stream_options", body.complaints());
  call.include_usage = options.boolean("include_usage").value_or(false);
  options.ignore("include_obfuscation");
  options.refuse_unread();
}

// How many alternatives the route's own fields ask for; nothing if they ask for no log-probabilities.
std::optional<std::int64_t> read_route_logprobs(FieldReader& body, Route route) {
  if (route == Route::kCompletions) return body.integer("logprobs", 0, limits::kCompletionLogprobsMax);
  const bool wanted = body.boolean("logprobs").value_or(false);
  const auto n_top = body.integer("top_logprobs", 0, limits::kTopLogprobsMax);
  if (n_top && *n_top > 0 && !wanted) body.complain("top_logprobs", "needs logprobs: true");
  if (!wanted) return std::nullopt;
  return n_top.value_or(0);
}

void read_logprobs(FieldReader& body, Call& call) {
  std::optional<std::int64_t> n_top = read_route_logprobs(body, call.route);
  const auto n_probs = body.integer("n_probs", 0, limits::kTopLogprobsMax);
  if (n_probs && *n_probs > 0) {
    if (n_top && *n_top != *n_probs)
      body.complain("n_probs", "and logprobs ask for different numbers of alternatives; give one");
    n_top = n_probs;
  }
  call.logprobs = n_top.has_value();
  call.request.n_top_logprobs = static_cast<std::int32_t>(n_top.value_or(0));
}

std::vector<std::string_view> known_names(Route route) {
  std::vector<std::string_view> names;
  for (const Field& field : fields())
    if (is_on(field, route) && !is_nested(field)) names.push_back(field.name);
  return names;
}

std::string path_of(Route route) { return route == Route::kChat ? "/v1/chat/completions" : "/v1/completions"; }

// Of a field that this route does not know: where it belongs.
std::string hint_of(Route route, std::span<const std::string_view> known, std::string_view name) {
  constexpr std::string_view kOurs = "fermata.";
  const Route other = route == Route::kChat ? Route::kCompletions : Route::kChat;
  std::vector<std::string_view> ours;
  for (const Field& field : fields()) {
    if (field.name.starts_with(kOurs)) ours.push_back(field.name.substr(kOurs.size()));
    if (field.name != name || !is_on(field, other)) continue;
    if (name == "prompt") return "give messages here, or send it to " + path_of(other);
    if (name == "messages") return "give prompt here, or send it to " + path_of(other);
    return path_of(other) + " has it";
  }
  const bool is_ours = std::find(ours.begin(), ours.end(), name) != ours.end();
  const std::string_view near = is_ours ? name : nearest(name, known).empty() ? nearest(name, ours) : "";
  return near.empty() ? std::string() : "did you mean " + std::string(kOurs).append(near) + "?";
}

}  // namespace

std::optional<std::string> read_name(FieldReader& reader, std::string_view name) {
  auto text = reader.string(name, limits::kNameBytesMax);
  if (!text) return text;
  if (text->empty()) {
    reader.complain(name, "must not be empty");
    return std::nullopt;
  }
  for (const char c : *text) {
    if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F) continue;
    reader.complain(name, "must have no control characters");
    return std::nullopt;
  }
  return text;
}

Result<Call> parse_call(Route route, std::string_view body) {
  const Result<json::object> object = parse_object(body);
  if (!object) return object.error();
  Complaints complaints;
  FieldReader reader(*object, "", complaints);
  Call call;
  call.route = route;
  const std::vector<std::string_view> known = known_names(route);
  // First: who misspells a field should not hear that it is missing.
  reader.refuse_unknown(known, [&](std::string_view name) { return hint_of(route, known, name); });
  apply_table(reader, route);
  call.model = read_name(reader, "model").value_or("");
  if (route == Route::kChat)
    read_messages(reader, call);
  else
    read_prompt(reader, call);
  read_length(reader, call);
  read_stop(reader, call);
  read_sampling(reader, call);
  read_constraint(reader, call);
  read_stream(reader, call);
  read_logprobs(reader, call);
  read_fermata(reader, call);
  reader.refuse_unread();  // the table knows it, and no code enforces it
  if (complaints.any()) return complaints.first();
  return call;
}

}  // namespace fermata::api
