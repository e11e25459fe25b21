// An example beside each schema of a body or an answer that examples.json has one for.
#include <string>
#include <utility>

#include "api/openapi/openapi_parts.h"
#include "api/openapi/openapi_source.h"

namespace fermata::api::openapi {
namespace {

// "@Pause" stands for the example of that name.
void replace_references(json::value& value, const json::object& all) {
  if (value.is_object()) {
    for (auto& [key, inner] : value.get_object()) replace_references(inner, all);
  } else if (value.is_array()) {
    for (json::value& inner : value.get_array()) replace_references(inner, all);
  } else if (value.is_string() && value.get_string().starts_with('@')) {
    value = json::value(all.at(std::string_view(value.get_string()).substr(1)));
    replace_references(value, all);
  }
}

void add_to_media(json::object& holder, const json::object& all) {
  json::value* content = holder.if_contains("content");
  if (content == nullptr) return;
  for (auto& [type, media] : content->get_object()) {
    const json::value* schema = media.get_object().if_contains("schema");
    const json::value* reference = schema ? schema->get_object().if_contains("$ref") : nullptr;
    const json::value* example = reference ? all.if_contains(last_part(reference->get_string())) : nullptr;
    if (example != nullptr) media.get_object()["example"] = *example;
  }
}

}  // namespace

json::object read_examples() {
  json::object all = read_source(kExamples);
  const json::object before = all;
  for (auto& [name, example] : all) replace_references(example, before);
  return all;
}

void add_examples(json::object& operation, const json::object& all) {
  if (json::value* body = operation.if_contains("requestBody")) add_to_media(body->get_object(), all);
  for (auto& [status, response] : operation.at("responses").get_object()) add_to_media(response.get_object(), all);
}

}  // namespace fermata::api::openapi
