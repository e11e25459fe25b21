#pragma once

#include <string_view>
#include <vector>

#include "api/openai/json.h"

// Parts of the description of what is served, each from one place of the code.
namespace fermata::api::openapi {

// A file of src/api/openapi; its "=NAME" are replaced by the limit, or the words of the enum, that they stand for.
json::object read_source(std::string_view text);

// {"ChatRequest", "CompletionRequest"}, from the table of fields and fields.json.
json::object request_schemas();

// Examples by the names of their schemas; put beside these schemas in an operation.
json::object read_examples();
void add_examples(json::object& operation, const json::object& all);

// "#/components/schemas/Pause" -> "Pause".
inline std::string_view last_part(std::string_view reference) { return reference.substr(reference.rfind('/') + 1); }

// Statuses of errors, each with the codes that come with it: those of http_error.h, of ends that cut an answer short,
// and of requests that never reach a handler.
struct ErrorStatus {
  int status = 0;
  std::vector<std::string_view> codes;
};
std::vector<ErrorStatus> error_statuses();
json::array error_types();
json::array error_codes();

}  // namespace fermata::api::openapi
