#include "api/openai/http_error.h"

#include <array>

#include "base/check.h"
#include "base/utf8.h"

namespace fermata::api {
namespace {

// What a client of OpenAI's libraries does with an answer of this status, on which it would post again by itself.
enum class Retry { kNever, kIfRetryable, kLater };

struct Row {
  Code code;
  int status;
  std::string_view type;
  std::string_view name;  // as it goes over the wire; empty: to_string(code)
  Retry retry;
};

constexpr std::string_view kInvalid = "invalid_request_error";
constexpr std::string_view kServer = "server_error";

constexpr std::array kRows{
    Row{Code::kInvalidArgument, 400, kInvalid, {}, Retry::kNever},
    Row{Code::kTooLarge, 400, kInvalid, {}, Retry::kNever},
    Row{Code::kContextLength, 400, kInvalid, {}, Retry::kNever},
    Row{Code::kNotFound, 404, kInvalid, {}, Retry::kNever},
    Row{Code::kModelNotFound, 404, kInvalid, {}, Retry::kNever},
    Row{Code::kWrongState, 409, kInvalid, {}, Retry::kNever},
    Row{Code::kBusy, 429, "rate_limit_error", {}, Retry::kLater},
    Row{Code::kNoCells, 503, kServer, "overloaded", Retry::kLater},
    Row{Code::kNoSequences, 503, kServer, "overloaded", Retry::kLater},
    Row{Code::kGrammar, 422, kInvalid, {}, Retry::kNever},
    Row{Code::kAborted, 409, kInvalid, {}, Retry::kNever},
    Row{Code::kUnsupported, 501, kInvalid, {}, Retry::kNever},
    Row{Code::kModel, 500, kServer, {}, Retry::kIfRetryable},
    Row{Code::kEngine, 500, kServer, {}, Retry::kIfRetryable},
    Row{Code::kIo, 500, kServer, {}, Retry::kIfRetryable},
    Row{Code::kUnauthenticated, 401, "authentication_error", "invalid_api_key", Retry::kNever},
    Row{Code::kForbidden, 403, "permission_error", {}, Retry::kNever},
    Row{Code::kWrongHost, 421, kInvalid, {}, Retry::kNever},
    Row{Code::kMediaType, 415, kInvalid, {}, Retry::kNever},
    Row{Code::kMethod, 405, kInvalid, {}, Retry::kNever},
    Row{Code::kGone, 410, kInvalid, "expired", Retry::kNever},
    Row{Code::kStale, 409, kInvalid, {}, Retry::kNever},
    Row{Code::kAlreadyResumed, 409, kInvalid, {}, Retry::kNever},
    Row{Code::kPaused, 409, kInvalid, {}, Retry::kNever},
    Row{Code::kIdempotency, 422, kInvalid, {}, Retry::kNever},
    Row{Code::kTextSent, 409, kInvalid, {}, Retry::kNever},
    Row{Code::kDuplicate, 409, kInvalid, {}, Retry::kNever},
    Row{Code::kDraining, 503, kServer, {}, Retry::kLater},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i)
    if (static_cast<std::size_t>(kRows[i].code) != i) return false;
  return true;
}
static_assert(in_order(), "a code is the index of its row");
static_assert(kRows.size() == static_cast<std::size_t>(Code::kDraining) + 1, "every code has a row");

constexpr int kRetryAfterSeconds = 1;
constexpr int kWholeBodyTooLarge = 413;

const Row& row_of(Code code) {
  FERMATA_CHECK(static_cast<std::size_t>(code) < kRows.size());
  return kRows[static_cast<std::size_t>(code)];
}

std::string_view name_of(const Row& row) { return row.name.empty() ? to_string(row.code) : row.name; }

// OpenAI's libraries post again, by themselves, on these.
bool is_posted_again(int status) { return status == 408 || status == 409 || status == 429 || status >= 500; }

// A message may quote what a client sent, e.g. in a header.
std::string as_utf8(std::string text) {
  if (is_utf8(text)) return text;
  for (char& c : text)
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  return text;
}

}  // namespace

int http_status(const Error& error) {
  if (error.code == Code::kTooLarge && error.field == kWholeBody) return kWholeBodyTooLarge;
  return row_of(error.code).status;
}

WireError wire_error(const Error& error, json::object fermata) {
  const Row& row = row_of(error.code);
  WireError wire;
  wire.status = http_status(error);
  wire.type = row.type;
  wire.code = name_of(row);
  wire.message = as_utf8(error.message);
  if (error.field != kWholeBody) wire.param = as_utf8(error.field);
  wire.fermata = std::move(fermata);
  if (!error.detail.empty() && !wire.fermata.contains("detail")) wire.fermata["detail"] = as_utf8(error.detail);
  wire.may_be_retried = row.retry == Retry::kLater || (row.retry == Retry::kIfRetryable && error.retryable);
  if (row.retry == Retry::kLater) wire.retry_after_s = kRetryAfterSeconds;
  return wire;
}

json::object error_object(const WireError& error) {
  json::object inner;
  inner["message"] = error.message;
  inner["type"] = json::string_view(error.type.data(), error.type.size());
  inner["code"] = error.code;
  if (error.param.empty())
    inner["param"] = nullptr;
  else
    inner["param"] = error.param;
  if (!error.fermata.empty()) inner["fermata"] = error.fermata;
  json::object outer;
  outer["error"] = std::move(inner);
  return outer;
}

json::object error_object(const Error& error, json::object fermata) {
  return error_object(wire_error(error, std::move(fermata)));
}

std::vector<std::pair<std::string, std::string>> error_headers(const WireError& error) {
  std::vector<std::pair<std::string, std::string>> headers;
  if (error.retry_after_s > 0) headers.emplace_back("Retry-After", std::to_string(error.retry_after_s));
  if (is_posted_again(error.status) && !error.may_be_retried) headers.emplace_back("x-should-retry", "false");
  return headers;
}

std::vector<std::pair<std::string, std::string>> error_headers(const Error& error) {
  return error_headers(wire_error(error));
}

std::vector<ErrorName> error_names() {
  std::vector<ErrorName> names;
  for (const Row& row : kRows) {
    names.push_back({row.status, row.type, name_of(row)});
    if (row.code == Code::kTooLarge) names.push_back({kWholeBodyTooLarge, row.type, name_of(row)});
  }
  return names;
}

std::string error_table() {
  std::string out = "| status | `code` | `type` | a client should try again |\n|---|---|---|---|\n";
  for (const Row& row : kRows) {
    std::string line = "| " + std::to_string(row.status);
    if (row.code == Code::kTooLarge) line += "; 413 for the body as a whole";
    line += " | `" + std::string(name_of(row)) + "` | `" + std::string(row.type) + "` | ";
    line += row.retry == Retry::kLater         ? "after `Retry-After`"
            : row.retry == Retry::kIfRetryable ? "unless `x-should-retry: false`"
            : is_posted_again(row.status)      ? "no: `x-should-retry: false`"
                                               : "no";
    line += " |\n";
    if (out.find(line) == std::string::npos) out += line;  // several codes may go out alike
  }
  return out;
}

}  // namespace fermata::api
