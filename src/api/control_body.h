#pragma once

#include <string_view>

#include "base/result.h"

namespace fermata::api {

// Bodies of calls that steer a generation are short: kTooLarge beyond limits::kControlBodyBytesMax.
Result<void> check_control_size(std::string_view body);

// Of a call that has no fields: nothing, or an empty object.
Result<void> check_no_fields(std::string_view body);

}  // namespace fermata::api
