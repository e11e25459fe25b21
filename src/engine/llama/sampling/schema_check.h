#pragma once

#include <string_view>

#include "base/result.h"

class common_json;

namespace fermata {

// Before parsing: brackets outside of strings nest at most limits::kSchemaDepthMax deep.
Result<void> check_json_depth(std::string_view text);

// After parsing: what json_schema.h says. Bounds the conversion's work, number of visits and bytes of rule names.
Result<void> check_schema(const common_json& root);

// What the conversion knows of regular expressions: anchored by ^ and $, no \d and the like, no lookaround.
// Else what is wrong with it.
Result<void> check_pattern(std::string_view pattern, const std::string& place);

}  // namespace fermata
