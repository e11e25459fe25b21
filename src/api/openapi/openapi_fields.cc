// Schemas of the bodies of the OpenAI routes, from the table of fields.
#include <algorithm>
#include <string>
#include <utility>

#include "api/openai/fields.h"
#include "api/openapi/openapi_parts.h"
#include "api/openapi/openapi_source.h"
#include "base/check.h"

namespace fermata::api::openapi {
namespace {

json::object number_schema(const Field& field) {
  const bool is_whole = std::holds_alternative<std::int32_t SamplingParams::*>(field.member);
  json::object schema{{"type", is_whole ? "integer" : "number"}};
  schema["minimum"] = field.least;
  schema["maximum"] = field.most;
  return schema;
}

// Of a refused field: what is accepted all the same.
json::object neutral_schema(const Field& field) {
  json::array accepted{nullptr};
  for (std::string_view left = field.neutral; !left.empty();) {
    const std::size_t end = std::min(left.find('|'), left.size());
    accepted.push_back(*parse_json(left.substr(0, end)));
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  json::object schema;
  schema["enum"] = std::move(accepted);
  return schema;
}

// null is the same as absent.
json::object or_null(json::object schema) {
  json::value* type = schema.if_contains("type");
  if (type == nullptr) {
    json::object nullable;
    nullable["anyOf"] = json::array{std::move(schema), json::object{{"type", "null"}}};
    return nullable;
  }
  *type = json::array{*type, "null"};
  if (json::value* words = schema.if_contains("enum")) words->get_array().emplace_back(nullptr);
  return schema;
}

std::string_view needed_field(Route route) { return route == Route::kChat ? "messages" : "prompt"; }

json::object enforced_schema(const Field& field, Route route, const json::object& written) {
  if (field.member.index() != 0) return or_null(number_schema(field));
  const std::string name(field.same_as.empty() ? field.name : field.same_as);
  const json::value* schema = written.if_contains(name);
  if (schema == nullptr) schema = written.if_contains((route == Route::kChat ? "chat " : "completions ") + name);
  FERMATA_CHECK(schema != nullptr);
  return field.name == needed_field(route) ? schema->get_object() : or_null(schema->get_object());
}

json::object field_schema(const Field& field, Route route, const json::object& written) {
  json::object schema;
  std::string description;
  if (field.treatment == Treatment::kEnforced) schema = enforced_schema(field, route, written);
  if (field.treatment == Treatment::kRefused) schema = neutral_schema(field);
  if (field.treatment == Treatment::kHarmless) description = "without effect: ";
  if (field.treatment == Treatment::kRefused) description = "refused: ";
  description += meaning_of(field);
  if (!description.empty()) schema["description"] = description;
  return schema;
}

json::object request_schema(Route route, const json::object& written) {
  json::object schema{{"type", "object"}, {"additionalProperties", false}};
  schema["required"] = json::array{json::value(needed_field(route))};
  json::object& properties = schema["properties"].emplace_object();
  for (const Field& field : fields()) {
    if (!is_on(field, route)) continue;
    json::object made = field_schema(field, route, written);
    const std::size_t dot = field.name.find('.');
    if (dot == std::string_view::npos) {
      properties[field.name] = std::move(made);
      continue;
    }
    json::object& outer = properties.at(field.name.substr(0, dot)).get_object();
    if (!outer.contains("properties")) outer["properties"].emplace_object();
    outer["properties"].get_object()[field.name.substr(dot + 1)] = std::move(made);
  }
  return schema;
}

}  // namespace

json::object request_schemas() {
  const json::object written = read_source(kFields);
  json::object schemas;
  schemas["ChatRequest"] = request_schema(Route::kChat, written);
  schemas["CompletionRequest"] = request_schema(Route::kCompletions, written);
  return schemas;
}

}  // namespace fermata::api::openapi
