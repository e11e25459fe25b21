#include "api/parameters.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "api/openapi/openapi.h"
#include "api/respond.h"
#include "base/nearest.h"

namespace fermata::api {
namespace {

Error unknown_parameter(const std::string& name, std::span<const std::string> known) {
  const std::string shown = name.empty() ? "\"\"" : shortened(name);
  std::string message = "unknown parameter " + shown + "; ";
  const std::string_view hint = nearest(name, std::vector<std::string_view>(known.begin(), known.end()));
  if (!hint.empty()) message += "did you mean " + std::string(hint) + "? ";
  message += known.empty() ? "this call has none" : "this call has";
  for (const std::string& one : known) message += (&one == &known.front() ? " " : ", ") + one;
  return invalid(shown, std::move(message));
}

Handler checked(std::vector<std::string> known, Handler handler) {
  return [known = std::move(known), handler = std::move(handler)](HttpRequest request, Exchange& exchange) {
    const Result<void> well = check_parameters(request, known);
    return well ? handler(std::move(request), exchange) : refuse(exchange, well.error());
  };
}

}  // namespace

Result<void> check_parameters(const HttpRequest& request, std::span<const std::string> known) {
  for (const auto& [name, value] : request.query)
    if (std::find(known.begin(), known.end(), name) == known.end()) return unknown_parameter(name, known);
  if (request.repeated)
    return invalid(*request.repeated, "parameter " + *request.repeated + " stands there more than once; give it once");
  return {};
}

void add_with_own_parameters(Router& router, const Router& own) {
  for (Endpoint endpoint : own.endpoints()) {
    endpoint.handler = checked(query_parameters(endpoint), std::move(endpoint.handler));
    router.add(std::move(endpoint));
  }
}

}  // namespace fermata::api
