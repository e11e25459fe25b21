#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/openai/json.h"
#include "base/limits.h"
#include "base/result.h"

namespace fermata::api {

// The body of a call that steers a generation; an empty one is an object without fields. kTooLarge beyond n_bytes_max:
// most are short.
Result<json::object> parse_control(std::string_view body, std::size_t n_bytes_max = limits::kControlBodyBytesMax);

// What `if_version` is told that is not this one.
Error another_version(std::uint64_t version);

// Of a call that has no fields: nothing, or an empty object.
Result<void> check_no_fields(std::string_view body);

}  // namespace fermata::api
