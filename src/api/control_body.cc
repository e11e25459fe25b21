#include "api/control_body.h"

#include <string>

#include "api/openai/fields.h"

namespace fermata::api {

Result<json::object> parse_control(std::string_view body, std::size_t n_bytes_max) {
  if (body.empty()) return json::object();
  if (body.size() <= n_bytes_max) return parse_object(body);
  return Error{Code::kTooLarge,
               "the body has " + std::to_string(body.size()) + " bytes; at most " + std::to_string(n_bytes_max) +
                   " are read here",
               {},
               false,
               std::string(kWholeBody)};
}

Error another_version(std::uint64_t version) {
  return {Code::kStale, "the generation has another version", "it has " + std::to_string(version), false, "if_version"};
}

Result<void> check_no_fields(std::string_view body) {
  const Result<json::object> object = parse_control(body);
  if (!object) return object.error();
  Complaints complaints;
  FieldReader(*object, "", complaints).refuse_unread();
  if (complaints.any()) return complaints.first();
  return {};
}

}  // namespace fermata::api
