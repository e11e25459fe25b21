#pragma once

#include <span>
#include <string>

#include "api/http/router.h"
#include "base/result.h"

namespace fermata::api {

// A query parameter that is none of `known` is kInvalidArgument that names it, and those that there are: one that is
// misspelt must not be lost in silence. Nor must the value of one that comes twice.
Result<void> check_parameters(const HttpRequest& request, std::span<const std::string> known);

// Adds the endpoints of `own` to `router`, each with this check before its handler. What parameters there are, an
// endpoint has from its description (openapi/calls.json). Not for what others defined: clients of OpenAI's API and
// proxies add parameters that mean nothing here.
void add_with_own_parameters(Router& router, const Router& own);

}  // namespace fermata::api
