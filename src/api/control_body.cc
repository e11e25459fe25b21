#include "api/control_body.h"

#include <string>

#include "api/openai/fields.h"
#include "base/limits.h"

namespace fermata::api {

Result<json::object> parse_control(std::string_view body) {
  if (body.empty()) return json::object();
  if (body.size() <= limits::kControlBodyBytesMax) return parse_object(body);
  return Error{Code::kTooLarge,
               "the body has " + std::to_string(body.size()) + " bytes; at most " +
                   std::to_string(limits::kControlBodyBytesMax) + " are read here",
               {},
               false,
               std::string(kWholeBody)};
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
