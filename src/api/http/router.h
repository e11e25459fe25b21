#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/http/http_message.h"

namespace fermata::api {

struct RouteOptions {
  bool needs_json_body = false;  // an empty body is a 400 before the handler is called
  bool open = false;             // answered without a key (health of a load balancer); the principal is then nobody
};

struct Endpoint {
  std::string method;
  std::vector<std::string> pattern;  // segments; "*" is any one of them, a last "**" all the rest
  Scope scope = Scope::kUse;
  Handler handler;
  RouteOptions options;
};

// Method and path -> handler. Filled before the listener starts, then only read.
class Router {
 public:
  // Pattern like "/v1/generations/*/pause": `*` stands for one segment that is not empty, `**` (at the end only) for
  // one or more. Where two patterns match, the one whose first different segment is a word wins.
  void add(std::string method, std::string_view pattern, Scope scope, Handler handler, RouteOptions options = {});
  void add(Endpoint route);

  struct Match {
    const Endpoint* route = nullptr;
    std::vector<std::string> parts;  // decoded; an encoded slash stays inside its part
    std::string allow;               // no route but this is filled: the path is there for these methods
  };
  // `path` as it came, percent-encoded (and well so: RequestParser sees to it). HEAD is answered by GET's route.
  Match find(std::string_view method, std::string_view path) const;

  // Of a path that is not there: the one that is meant, if it lacks /v1, has it twice or where none belongs, or ends
  // with a slash. Empty: none.
  std::string meant(std::string_view path) const;

  const std::vector<Endpoint>& endpoints() const { return routes_; }

 private:
  std::vector<Endpoint> routes_;
};

}  // namespace fermata::api
