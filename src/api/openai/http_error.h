#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/openai/json.h"
#include "base/result.h"

namespace fermata::api {

// An error as it goes over HTTP: the one mapping of Code to status, type and code. docs/api.md lists it.
struct WireError {
  int status = 500;
  std::string_view type = "server_error";  // OpenAI's set
  std::string code;                        // ours, e.g. "already_resumed"
  std::string message;
  std::string param;            // the field's path; empty: null
  json::object fermata = {};    // "detail", and what the caller adds; clients keep it, since it is inside `error`
  bool may_be_retried = false;  // by a client, of its own accord
  int retry_after_s = 0;        // 0: says nothing
};

// kTooLarge is 413 for a body as a whole (field kWholeBody) and 400 for anything that is written in it.
WireError wire_error(const Error& error, json::object fermata = {});
int http_status(const Error& error);

// {"error": {"message", "type", "code", "param", "fermata"?}}
json::object error_object(const WireError& error);
json::object error_object(const Error& error, json::object fermata = {});
// Retry-After, and x-should-retry: false wherever a client would post again what cannot work (always on 409, 501, 507).
std::vector<std::pair<std::string, std::string>> error_headers(const WireError& error);
std::vector<std::pair<std::string, std::string>> error_headers(const Error& error);

// Every error that http_error knows, once per status it comes with.
struct ErrorName {
  int status;
  std::string_view type;
  std::string_view code;
};
std::vector<ErrorName> error_names();

// Every code with its status, for docs/api.md.
std::string error_table();

}  // namespace fermata::api
