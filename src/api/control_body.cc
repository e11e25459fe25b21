#include "api/control_body.h"

#include <string>

#include "api/openai/fields.h"
#include "api/openai/json.h"
#include "base/limits.h"

namespace fermata::api {

Result<void> check_control_size(std::string_view body) {
  if (body.size() <= limits::kControlBodyBytesMax) return {};
  return Error{Code::kTooLarge,
               "the body has " + std::to_string(body.size()) + " bytes; at most " +
                   std::to_string(limits::kControlBodyBytesMax) + " are read here",
               {},
               false,
               std::string(kWholeBody)};
}

// Of a call that has no fields: nothing, or an empty object.
Result<void> check_no_fields(std::string_view body) {
  if (body.empty()) return {};
  if (const Result<void> fits = check_control_size(body); !fits) return fits.error();
  const Result<json::value> value = parse_json(body);
  if (!value) return value.error();
  if (!value->is_object())
    return Error{Code::kInvalidArgument, "the body must be an object", in_words(*value), false,
                 std::string(kWholeBody)};
  Complaints complaints;
  FieldReader(value->get_object(), "", complaints).refuse_unread({});
  if (complaints.any()) return complaints.first();
  return {};
}

}  // namespace fermata::api
