#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fermata::client {

// Members of what a server says, which may lack them or have them of another type.

std::string text_at(const boost::json::object& object, std::string_view key);  // else ""
double number_at(const boost::json::object& object, std::string_view key, double otherwise = 0);
// Rounded towards 0; what is no number, or none of these, is `otherwise`.
std::int64_t integer_at(const boost::json::object& object, std::string_view key, std::int64_t otherwise = 0);
bool is_true_at(const boost::json::object& object, std::string_view key);  // else, also of another type, false
const boost::json::object* object_at(const boost::json::object& object, std::string_view key);  // else null

// The "data" of a list. kIo: it is no list.
Result<boost::json::array> data_of(boost::json::object list);

}  // namespace fermata::client
