#include "api/openapi/doc_tables.h"

#include <algorithm>
#include <utility>
#include <vector>

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

// Of an event: what each of its types has. A field that several have stands there once.
std::string event_table(const json::array& types) {
  std::string out = "| `type` | says |\n|---|---|\n";
  std::vector<std::pair<std::string, std::string>> rows;  // "`field` | meaning", in which types
  for (const json::value& one : types) {
    const json::object& properties = one.at("properties").get_object();
    const std::string type = "`" + std::string(properties.at("type").at("const").get_string()) + "`";
    out += "| " + type + " | " + std::string(one.at("description").get_string()) + " |\n";
    for (const auto& [key, property] : properties) {
      if (key == "type") continue;
      const std::string row = "`" + std::string(key) + "` | " + std::string(property.at("description").get_string());
      const auto place = std::find_if(rows.begin(), rows.end(), [&](const auto& known) { return known.first == row; });
      if (place == rows.end())
        rows.emplace_back(row, type);
      else
        place->second += ", " + type;
    }
  }
  const auto n_of = [](const std::string& in) { return std::count(in.begin(), in.end(), ',') + 1; };
  out += "\n| field | | in |\n|---|---|---|\n";
  for (const auto& [row, in] : rows) out += "| " + row + " | " + (n_of(in) == std::ssize(types) ? "all" : in) + " |\n";
  return out;
}

std::string table_named(std::string_view name) {
  if (name == "fields") return fields_table();
  if (name == "errors") return error_table();
  const json::object schemas = openapi::read_source(openapi::kSchemas);
  const json::value* schema = schemas.if_contains(name);
  if (!schema) return "There is no table of this name.\n";
  const json::value* types = schema->get_object().if_contains("oneOf");
  return types ? event_table(types->get_array()) : object_table(schema->get_object());
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
