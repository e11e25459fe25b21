#pragma once

#include <string_view>

#include "api/openai/json.h"
#include "base/result.h"

namespace fermata::api {

// The body of a call that steers a generation; an empty one is an object without fields. They are short: kTooLarge
// beyond limits::kControlBodyBytesMax.
Result<json::object> parse_control(std::string_view body);

// Of a call that has no fields: nothing, or an empty object.
Result<void> check_no_fields(std::string_view body);

}  // namespace fermata::api
