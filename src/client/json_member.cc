#include "client/json_member.h"

#include <utility>

namespace fermata::client {

namespace json = boost::json;

std::string text_at(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value && value->is_string() ? std::string(value->get_string()) : "";
}

double number_at(const json::object& object, std::string_view key, double otherwise) {
  const json::value* value = object.if_contains(key);
  boost::system::error_code failed;
  const double number = value && value->is_number() ? value->to_number<double>(failed) : otherwise;
  return failed ? otherwise : number;
}

std::int64_t integer_at(const json::object& object, std::string_view key, std::int64_t otherwise) {
  const json::value* value = object.if_contains(key);
  if (value && value->is_int64()) return value->get_int64();
  constexpr double kMost = 1LL << 53;  // up to here a double is what was written
  const double number = number_at(object, key, 2 * kMost);
  return number >= -kMost && number <= kMost ? static_cast<std::int64_t>(number) : otherwise;
}

bool is_true_at(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value && value->is_bool() && value->get_bool();
}

const json::object* object_at(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value ? value->if_object() : nullptr;
}

Result<json::array> data_of(json::object list) {
  json::value* data = list.if_contains("data");
  if (!data || !data->is_array()) return Error{Code::kIo, "the server's answer is no list", {}, false};
  return std::move(data->get_array());
}

}  // namespace fermata::client
