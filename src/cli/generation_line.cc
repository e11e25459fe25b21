#include "cli/generation_line.h"

#include <string_view>

#include "base/text_width.h"
#include "cli/table.h"
#include "client/json_member.h"
#include "engine/llama/json_text.h"

namespace fermata::cli {

using client::number_at;
using client::object_at;
using client::text_at;

namespace {

namespace json = boost::json;

constexpr std::size_t kNameColumns = 24;
constexpr std::size_t kTextColumns = 40;

std::string or_dash(std::string text) { return text.empty() ? "-" : text; }

std::string cut(const std::string& text) {
  const std::string shown = printable(text);
  const std::string_view begun = beginning_of(shown, kNameColumns);
  return begun.size() == shown.size() ? shown : std::string(beginning_of(shown, kNameColumns - 1)) + "…";
}

// The newest words are those that tell where it is.
std::string last_words(const std::string& text) {
  const std::string shown = printable(text);
  const std::string_view end = end_of(shown, kTextColumns);
  return end.size() == shown.size() ? shown : "…" + std::string(end_of(shown, kTextColumns - 1));
}

std::string called(const json::object& generation) {
  const std::string client_id = text_at(generation, "client_id");
  return client_id.empty() ? printable(text_at(generation, "id")) : "client:" + cut(client_id);
}

}  // namespace

std::string state_in_words(const json::object& generation) {
  const std::string state = or_dash(text_at(generation, "state"));
  std::string why = text_at(generation, "wait_reason");
  if (why.empty()) why = text_at(generation, "end_reason");
  return why.empty() ? state : state + " (" + why + ")";
}

std::vector<std::string> generation_heads() { return {"NAME", "STATE", "SESSION", "TOKENS", "AGE", "TEXT"}; }

std::vector<std::string> generation_line(const json::object& generation, double now) {
  const json::object* usage = object_at(generation, "usage");
  const std::int64_t n_tokens = usage ? client::integer_at(*usage, "completion_tokens") : 0;
  return {or_dash(called(generation)),
          printable(state_in_words(generation)),
          or_dash(cut(text_at(generation, "session"))),
          std::to_string(n_tokens),
          age(now - number_at(generation, "created_at")),
          last_words(text_at(generation, "text"))};
}

}  // namespace fermata::cli
