#include "api/http/http_request.h"

#include <algorithm>

namespace fermata::api {

bool Principal::may(Scope scope) const { return std::find(scopes.begin(), scopes.end(), scope) != scopes.end(); }

std::string_view HttpRequest::header(std::string_view name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string_view() : found->second;
}

std::optional<std::string> HttpRequest::parameter(std::string_view name) const {
  const auto found = query.find(name);
  if (found == query.end()) return std::nullopt;
  return found->second;
}

}  // namespace fermata::api
