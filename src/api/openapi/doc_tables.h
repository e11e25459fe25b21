#pragma once

#include <string>
#include <string_view>

namespace fermata::api {

// docs/api.md with its generated tables made anew: the lines between "<!-- table: NAME -->" and "<!-- end -->". NAME is
// fields (../openai/fields.h), errors (../openai/http_error.h) or an object of schemas.json. The rest is left as it is.
std::string with_tables(std::string_view document);

}  // namespace fermata::api
