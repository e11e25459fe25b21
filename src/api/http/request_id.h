#pragma once

#include <string>
#include <string_view>

namespace fermata::api {

// Whether a client's x-request-id may stand in our answer and log: 1 to 128 letters, digits and -_.:/+=@
bool is_request_id(std::string_view text);

// "req_" and 128 random bits.
std::string new_request_id();

}  // namespace fermata::api
