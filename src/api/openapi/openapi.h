#pragma once

#include <span>
#include <string>
#include <vector>

#include "api/http/router.h"
#include "api/openai/json.h"

namespace fermata::api {

// OpenAPI 3.1 of these endpoints: what the code knows of them, and what src/api/openapi says. Each endpoint must be
// described there, and nothing else: that is checked.
json::object openapi_document(std::span<const Endpoint> endpoints);

// Names of the query parameters that this endpoint is described with.
std::vector<std::string> query_parameters(const Endpoint& endpoint);

}  // namespace fermata::api
