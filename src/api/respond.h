#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "api/http/http_message.h"
#include "api/openai/http_error.h"
#include "api/openai/json.h"

namespace fermata::api {

HttpResponse json_response(const json::value& body, int status = 200);
// What a stream of server-sent events begins with.
HttpResponse event_stream_head();
HttpResponse error_response(const WireError& error);
// `fermata`: what stands in the error beside its detail, e.g. a pause record.
HttpResponse error_response(const Error& error, json::object fermata = {});

inline boost::asio::awaitable<void> refuse(Exchange& exchange, const Error& error) {
  return exchange.respond(error_response(error));
}

// The value of a query parameter within bounds; kInvalidArgument that names it.
Result<std::int64_t> number_parameter(const HttpRequest& request, std::string_view name, std::int64_t otherwise,
                                      std::int64_t least, std::int64_t most);

// Whether the value of a query parameter, if it is there, is one of `known`; kInvalidArgument that names it, them and
// the nearest.
Result<void> check_word(const HttpRequest& request, std::string_view name, std::span<const std::string_view> known);
// The same of several with commas between; none if the parameter is not there.
Result<std::set<std::string, std::less<>>> words_parameter(const HttpRequest& request, std::string_view name,
                                                           std::span<const std::string_view> known);
Error no_such_word(std::string_view name, const std::string& value, std::span<const std::string_view> known);

// What stands at the first `*` of the route's pattern.
inline std::string_view name_in_path(const HttpRequest& request) { return request.parts.front(); }

Error invalid(std::string_view field, std::string message, std::string detail = {});

}  // namespace fermata::api
