#include "api/openai/fields_doc.h"

#include "api/openai/fields.h"
#include "api/openai/http_error.h"

namespace fermata::api {
namespace {

std::string table_named(std::string_view name) {
  if (name == "fields") return fields_table();
  if (name == "errors") return error_table();
  return "There is no table of this name.\n";
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
