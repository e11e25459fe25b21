#pragma once

#include <string_view>

// The files of src/api/openapi, as they were when the program was built.
namespace fermata::api::openapi {

extern const std::string_view kBase;
extern const std::string_view kCalls;
extern const std::string_view kExamples;
extern const std::string_view kFields;
extern const std::string_view kRequests;
extern const std::string_view kSchemas;

}  // namespace fermata::api::openapi
