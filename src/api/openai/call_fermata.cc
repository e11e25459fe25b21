#include <limits>
#include <utility>

#include "api/openai/call_parts.h"
#include "base/limits.h"

namespace fermata::api {
namespace {

template <class Enum, std::size_t n>
Enum read_choice(FieldReader& options, std::string_view name, const std::string_view (&words)[n],
                 const Enum (&values)[n], Enum otherwise) {
  const auto i = options.word(name, words);
  return i ? values[*i] : otherwise;
}

void read_choices(FieldReader& options, FermataOptions& out) {
  static constexpr std::string_view kOnPause[] = {"hold", "return"};
  static constexpr OnPause kOnPauseValues[] = {OnPause::kHold, OnPause::kReturn};
  out.on_pause = read_choice(options, "on_pause", kOnPause, kOnPauseValues, out.on_pause);
  static constexpr std::string_view kOnDisconnect[] = {"cancel", "pause", "continue"};
  static constexpr OnDisconnect kOnDisconnectValues[] = {OnDisconnect::kCancel, OnDisconnect::kPause,
                                                         OnDisconnect::kContinue};
  out.on_disconnect = read_choice(options, "on_disconnect", kOnDisconnect, kOnDisconnectValues, out.on_disconnect);
  static constexpr std::string_view kOnNew[] = {"cancel", "pause", "queue"};
  static constexpr OnNewMessage kOnNewValues[] = {OnNewMessage::kCancel, OnNewMessage::kPause, OnNewMessage::kQueue};
  const bool has_rule = options.any("on_new_message") != nullptr;
  out.on_new_message = read_choice(options, "on_new_message", kOnNew, kOnNewValues, out.on_new_message);
  if (has_rule && out.session.empty()) options.complain("on_new_message", "needs fermata.session");
}

void read_tags(FieldReader& options, FermataOptions& out) {
  const json::array* tags = options.array("tags");
  if (tags == nullptr) return;
  if (tags->size() > limits::kTagsMax) return options.too_large("tags", tags->size(), limits::kTagsMax, "tags");
  for (std::size_t i = 0; i < tags->size(); ++i) {
    const std::string name = "tags[" + std::to_string(i) + "]";
    const json::object holder{{name, (*tags)[i]}};
    FieldReader one(holder, "fermata", options.complaints());
    const auto tag = read_name(one, name);
    if (!tag) return one.complain(name, "must be a string");
    out.tags.push_back(*tag);
  }
}

void read_metadata(FieldReader& options, FermataOptions& out) {
  const json::object* metadata = options.object("metadata");
  if (metadata == nullptr) return;
  const std::size_t n_bytes = to_text(*metadata).size();
  if (n_bytes > limits::kMetadataBytesMax)
    return options.too_large("metadata", n_bytes, limits::kMetadataBytesMax, "bytes");
  out.metadata = *metadata;
}

void read_scheduling(FieldReader& options, Request& request) {
  if (const auto at = options.integer("pause_at", 0, std::numeric_limits<std::int32_t>::max()))
    request.pause_at = static_cast<std::int32_t>(*at);
  if (const auto ms = options.integer("timeout_ms", 1, limits::kTimeoutMsMax)) request.timeout = milliseconds(*ms);
  if (const auto priority = options.integer("priority", -limits::kPriorityMax, limits::kPriorityMax))
    request.priority = static_cast<std::int32_t>(*priority);
}

void check_together(FieldReader& options, const Call& call) {
  const FermataOptions& out = call.fermata;
  if (out.stream_events && !call.stream) options.complain("stream_events", "needs stream: true");
  // Half a JSON text makes clients that parse it raise.
  if (out.on_pause == OnPause::kReturn && !call.request.sampling.json_schema.empty() && !out.allow_partial)
    options.complain("on_pause", "is \"return\" for a JSON answer: that needs fermata.allow_partial: true");
}

}  // namespace

void read_fermata(FieldReader& body, Call& call) {
  const json::object* object = body.object("fermata");
  if (object == nullptr) return;
  FieldReader options(*object, "fermata", body.complaints());
  FermataOptions& out = call.fermata;
  out.session = read_name(options, "session").value_or("");
  out.client_id = read_name(options, "client_id").value_or("");
  out.idempotency_key = read_name(options, "idempotency_key").value_or("");
  out.stream_events = options.boolean("stream_events").value_or(false);
  out.allow_partial = options.boolean("allow_partial").value_or(false);
  read_choices(options, out);
  read_tags(options, out);
  read_metadata(options, out);
  read_scheduling(options, call.request);
  check_together(options, call);
  options.refuse_unread();
}

}  // namespace fermata::api
