#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <string>

#include "base/result.h"
#include "client/http_client.h"

namespace fermata::client {

namespace json = boost::json;

// A running fermata, asked by its API: paths as docs/api.md has them, JSON in and out. What it refuses is an Error with
// its own words. One thread.
class RemoteServer {
 public:
  explicit RemoteServer(Endpoint endpoint) : http_(std::move(endpoint)) {}

  Result<json::object> get(const std::string& path);
  Result<json::object> post(const std::string& path, const json::object& body = {});
  // All pages of a list, in its order; `path` without `limit` and `after`.
  Result<json::array> list(const std::string& path);

  // Answered inside http().wait().
  void post_later(const std::string& path, const json::object& body, std::function<void(Result<json::object>)> then);

  HttpClient& http() { return http_; }

 private:
  HttpClient http_;
};

// The object that an answer is, or the error that it tells of.
Result<json::object> object_of(const Result<HttpAnswer>& answer);
Error error_of(int status, const json::object& body);

}  // namespace fermata::client
