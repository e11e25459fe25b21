#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fermata::api {

enum class Scope { kUse, kReview, kAdmin };

// Who asks. Without keys on loopback: the local user, tenant "", with all scopes.
struct Principal {
  std::string name;
  std::string tenant;
  std::vector<Scope> scopes;
  bool may(Scope scope) const;
  bool operator==(const Principal&) const = default;
};

struct HttpRequest {
  std::string method;                                       // "GET"
  std::string path;                                         // decoded, without the query; UTF-8
  std::map<std::string, std::string, std::less<>> query;    // decoded, UTF-8; the last of equal names
  std::optional<std::string> repeated;                      // of the query: a name that came twice
  std::map<std::string, std::string, std::less<>> headers;  // names in lower case; values are bytes, maybe no UTF-8
  std::string body;
  std::vector<std::string> parts;  // what the `*` of the route's pattern stood for, in order
  Principal principal;

  std::string_view header(std::string_view name) const;  // empty if there is none
  std::optional<std::string> parameter(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

}  // namespace fermata::api
