#include "api/openapi/openapi.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "api/http/api_keys.h"
#include "api/openapi/openapi_parts.h"
#include "api/openapi/openapi_source.h"
#include "base/check.h"
#include "base/version.h"

namespace fermata::api {
namespace {

using namespace openapi;

// An error that any call can end with: what is wrong with how it is asked, and who asks.
constexpr int kAlways[] = {400, 403, 408, 413, 421, 431, 500, 503};
constexpr int kOfBodies[] = {415};
constexpr int kOfKeys[] = {401};

json::object reference(std::string_view kind, std::string_view name) {
  return {{"$ref", "#/components/" + std::string(kind) + "/" + std::string(name)}};
}

// "/v1/models/{model}" -> {"/v1/models/*", {"model"}}: how the router has it, but for a last "**".
struct Path {
  std::string pattern;
  std::vector<std::string> names;
};
Path path_of(std::string_view text) {
  Path path;
  while (!text.empty()) {
    const std::size_t begin = std::min(text.find('{'), text.size());
    path.pattern += text.substr(0, begin);
    text.remove_prefix(begin);
    if (text.empty()) break;
    const std::size_t end = text.find('}');
    path.names.emplace_back(text.substr(1, end - 1));
    path.pattern += '*';
    text.remove_prefix(end + 1);
  }
  return path;
}

std::string pattern_of(const Endpoint& endpoint) {
  std::string pattern;
  for (const std::string& segment : endpoint.pattern) pattern += "/" + (segment == "**" ? "*" : segment);
  return pattern;
}

// The key of a call in calls.json: "GET /v1/models/{model}".
struct CallName {
  std::string_view method;
  std::string_view path;
};
CallName call_name(std::string_view key) {
  const std::size_t blank = key.find(' ');
  return {key.substr(0, blank), key.substr(blank + 1)};
}

const Endpoint* endpoint_of(std::span<const Endpoint> endpoints, std::string_view method, const std::string& pattern) {
  for (const Endpoint& endpoint : endpoints)
    if (endpoint.method == method && pattern_of(endpoint) == pattern) return &endpoint;
  return nullptr;
}

// What differs takes the place of what it differs from, however deep that stands.
void put_over(json::object& whole, const json::object& differs) {
  for (const auto& [key, value] : differs) {
    json::value& place = whole[key];
    if (place.is_object() && value.is_object())
      put_over(place.get_object(), value.get_object());
    else
      place = value;
  }
}

// The call that a "same_as" means, with what differs.
json::object unfolded(const json::object& call, const json::object& calls) {
  const json::value* other = call.if_contains("same_as");
  if (other == nullptr) return call;
  json::object whole = calls.at(other->get_string()).get_object();
  put_over(whole, call);
  whole.erase("same_as");
  return whole;
}

void add_errors(json::object& operation, const Endpoint& endpoint) {
  std::set<int> statuses(std::begin(kAlways), std::end(kAlways));
  if (endpoint.method == "POST") statuses.insert(std::begin(kOfBodies), std::end(kOfBodies));
  if (!endpoint.options.open) statuses.insert(std::begin(kOfKeys), std::end(kOfKeys));
  if (const json::value* own = operation.if_contains("errors"))
    for (const json::value& status : own->get_array()) statuses.insert(static_cast<int>(status.get_int64()));
  operation.erase("errors");
  json::object& responses = operation["responses"].get_object();
  for (const int status : statuses) {
    const std::string name = std::to_string(status);
    if (!responses.contains(name)) responses[name] = reference("responses", "error" + name);
  }
}

void add_body(json::object& operation, const Endpoint& endpoint) {
  if (endpoint.method != "POST") return;
  json::object body;
  json::object schema;
  if (json::value* own = operation.if_contains("requestBody")) schema = own->get_object();
  body["required"] = endpoint.options.needs_json_body;
  json::object& content = body["content"].emplace_object();
  content["application/json"] = json::object{{"schema", std::move(schema)}};
  operation["requestBody"] = std::move(body);
}

// Without keys nobody is asked for one.
void add_security(json::object& operation, const Endpoint& endpoint) {
  json::array security;
  std::string who = "Needs no key.";
  if (!endpoint.options.open) {
    const std::string_view scope = to_string(endpoint.scope);
    json::object key;
    key["key"] = json::array{json::value(scope)};
    security = json::array{std::move(key), json::object()};
    who = "Needs a key with the scope `" + std::string(scope) + "`, if the server has keys.";
  }
  operation["security"] = std::move(security);
  const json::value* more = operation.if_contains("description");
  operation["description"] = more ? std::string(more->get_string()) + " " + who : who;
}

// Every answer but the handshake of a WebSocket names its request.
void add_request_id(json::object& response) {
  json::value& headers = response["headers"];
  if (!headers.is_object()) headers.emplace_object();
  headers.get_object()["x-request-id"] = reference("headers", "x-request-id");
}

void add_request_ids(json::object& operation, json::array& parameters) {
  parameters.push_back(reference("parameters", "x-request-id"));
  for (auto& [status, response] : operation["responses"].get_object())
    if (status != "101" && !response.get_object().contains("$ref")) add_request_id(response.get_object());
}

json::object operation_of(json::object operation, const Path& path, const Endpoint& endpoint) {
  json::array parameters;
  for (const std::string& name : path.names) parameters.push_back(reference("parameters", name));
  if (const json::value* own = operation.if_contains("parameters"))
    for (const json::value& parameter : own->get_array()) parameters.push_back(parameter);
  add_request_ids(operation, parameters);
  operation["parameters"] = std::move(parameters);
  add_body(operation, endpoint);
  add_security(operation, endpoint);
  add_errors(operation, endpoint);
  return operation;
}

json::object error_response_of(const ErrorStatus& error) {
  json::object headers;
  const auto text_header = [&](const char* name, const char* description) {
    headers[name] = json::object{{"schema", json::object{{"type", "string"}}}, {"description", description}};
  };
  if (error.status == 429 || error.status == 503) text_header("Retry-After", "seconds");
  if (error.status == 408 || error.status == 409 || error.status >= 500)
    text_header("x-should-retry", "false: it cannot work");
  json::array codes;
  std::string description;
  for (const std::string_view code : error.codes) {
    codes.emplace_back(code);
    description += (description.empty() ? "" : ", ") + std::string(code);
  }
  json::object response;
  response["description"] = description;
  response["headers"] = std::move(headers);
  add_request_id(response);
  json::object& content = response["content"].emplace_object();
  content["application/json"] = json::object{{"schema", reference("schemas", "ErrorAnswer")}};
  response["x-codes"] = std::move(codes);
  return response;
}

void add_all(json::object& to, json::object from) {
  for (auto& [key, value] : from) {
    FERMATA_CHECK(!to.contains(key));
    to[key] = std::move(value);
  }
}

}  // namespace

json::object openapi_document(std::span<const Endpoint> endpoints) {
  json::object document = read_source(kBase);
  document["info"].get_object()["version"] = version();
  json::object& components = document["components"].get_object();
  json::object& schemas = components["schemas"].get_object();
  add_all(schemas, request_schemas());
  add_all(schemas, read_source(kRequests));
  add_all(schemas, read_source(kSchemas));
  for (const ErrorStatus& error : error_statuses())
    components["responses"].get_object()["error" + std::to_string(error.status)] = error_response_of(error);

  const json::object calls = read_source(kCalls);
  const json::object examples = read_examples();
  json::object& paths = document["paths"].get_object();
  for (const auto& [key, call] : calls) {
    const CallName name = call_name(key);
    const Path path = path_of(name.path);
    const Endpoint* endpoint = endpoint_of(endpoints, name.method, path.pattern);
    FERMATA_CHECK(endpoint != nullptr);
    std::string verb(name.method);
    for (char& c : verb) c = static_cast<char>(c - 'A' + 'a');
    json::value& methods = paths[name.path];
    if (!methods.is_object()) methods.emplace_object();
    json::object operation = operation_of(unfolded(call.get_object(), calls), path, *endpoint);
    add_examples(operation, examples);
    methods.get_object()[verb] = std::move(operation);
  }
  FERMATA_CHECK(calls.size() == endpoints.size());
  return document;
}

std::vector<std::string> query_parameters(const Endpoint& endpoint) {
  static const json::object calls = read_source(kCalls);
  static const json::object shared = read_source(kBase).at("components").at("parameters").get_object();
  std::vector<std::string> names;
  for (const auto& [key, call] : calls) {
    const CallName name = call_name(key);
    if (endpoint.method != name.method || pattern_of(endpoint) != path_of(name.path).pattern) continue;
    const json::object operation = unfolded(call.get_object(), calls);
    const json::value* parameters = operation.if_contains("parameters");
    if (parameters == nullptr) break;
    for (const json::value& one : parameters->get_array()) {
      const json::value* reference = one.get_object().if_contains("$ref");
      const json::value& parameter = reference ? shared.at(last_part(reference->get_string())) : one;
      if (parameter.at("in") == "query") names.emplace_back(parameter.at("name").get_string());
    }
  }
  return names;
}

}  // namespace fermata::api
