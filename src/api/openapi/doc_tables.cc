#include "api/openapi/doc_tables.h"

#include "api/openai/fields.h"
#include "api/openai/http_error.h"
#include "api/openapi/openapi_parts.h"
#include "api/openapi/openapi_source.h"

namespace fermata::api {
namespace {

void add_rows(std::string& out, const std::string& prefix, const json::object& schema) {
  for (const auto& [key, property] : schema.at("properties").get_object()) {
    const std::string name = prefix + std::string(key);
    if (const json::value* description = property.get_object().if_contains("description"))
      out += "| `" + name + "` | " + std::string(description->get_string()) + " |\n";
    if (property.get_object().contains("properties")) add_rows(out, name + ".", property.get_object());
  }
}

std::string object_table(const json::object& schema) {
  std::string out = "| field | |\n|---|---|\n";
  add_rows(out, "", schema);
  return out;
}

std::string table_named(std::string_view name) {
  if (name == "fields") return fields_table();
  if (name == "errors") return error_table();
  const json::object schemas = openapi::read_source(openapi::kSchemas);
  const json::value* schema = schemas.if_contains(name);
  return schema ? object_table(schema->get_object()) : "There is no table of this name.\n";
}

}  // namespace

std::string with_tables(std::string_view document) {
  constexpr std::string_view kBegin = "<!-- table: ";
  constexpr std::string_view kBeginEnd = " -->\n";
  constexpr std::string_view kEnd = "<!-- end -->";
  std::string out;
  while (true) {
    const std::size_t begin = document.find(kBegin);
    const std::size_t name = begin + kBegin.size();
    const std::size_t body = begin == std::string_view::npos ? begin : document.find(kBeginEnd, name);
    const std::size_t end = body == std::string_view::npos ? body : document.find(kEnd, body);
    if (end == std::string_view::npos) break;
    out += document.substr(0, body + kBeginEnd.size());
    out += "\n" + table_named(document.substr(name, body - name)) + "\n";
    out += kEnd;
    document.remove_prefix(end + kEnd.size());
  }
  return out + std::string(document);
}

}  // namespace fermata::api
