// Every error that goes over HTTP.
#include <algorithm>
#include <map>

#include "api/openai/answer.h"
#include "api/openai/http_error.h"
#include "api/openapi/openapi_parts.h"
#include "generation/state.h"

namespace fermata::api::openapi {
namespace {

// Said where a request is read (connection.cc, request_parser.cc), with a status of its own.
constexpr ErrorName kOfReading[] = {
    {408, "invalid_request_error", "invalid_argument"},
    {431, "invalid_request_error", "too_large"},
    {503, "rate_limit_error", "busy"},
};

// The end of a stream that is none of its generation (stream_answer.cc).
constexpr ErrorName kOfStreams[] = {{409, "invalid_request_error", "rewound"}};

std::vector<ErrorName> all_errors() {
  std::vector<ErrorName> all = error_names();
  all.insert(all.end(), std::begin(kOfStreams), std::end(kOfStreams));
  all.insert(all.end(), std::begin(kOfReading), std::end(kOfReading));
  for (std::size_t i = 1; i < kEndReasons; ++i) {
    FinishEvent end;
    end.reason = static_cast<EndReason>(i);
    if (end.reason == EndReason::kError || finish_reason(end.reason) != nullptr) continue;
    const WireError error = end_error(end);
    all.push_back({error.status, error.type, to_string(end.reason)});
  }
  return all;
}

void add_once(json::array& words, std::string_view word) {
  if (std::find(words.begin(), words.end(), json::value(word)) == words.end()) words.emplace_back(word);
}

}  // namespace

std::vector<ErrorStatus> error_statuses() {
  std::map<int, ErrorStatus> by_status;
  for (const ErrorName& error : all_errors()) {
    ErrorStatus& entry = by_status[error.status];
    entry.status = error.status;
    if (std::find(entry.codes.begin(), entry.codes.end(), error.code) == entry.codes.end())
      entry.codes.push_back(error.code);
  }
  std::vector<ErrorStatus> out;
  for (auto& [status, entry] : by_status) out.push_back(std::move(entry));
  return out;
}

json::array error_types() {
  json::array words;
  for (const ErrorName& error : all_errors()) add_once(words, error.type);
  return words;
}

json::array error_codes() {
  json::array words;
  for (const ErrorName& error : all_errors()) add_once(words, error.code);
  return words;
}

}  // namespace fermata::api::openapi
