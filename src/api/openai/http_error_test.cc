#include "api/openai/http_error.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>
#include <string>

namespace fermata::api {
namespace {

constexpr Code kLast = Code::kDraining;

std::map<std::string, std::string> headers_of(const Error& error) {
  const auto list = error_headers(error);
  return {list.begin(), list.end()};
}

TEST(HttpError, StatusesOfTheWire) {
  const std::pair<Code, int> expected[] = {
      {Code::kInvalidArgument, 400}, {Code::kTooLarge, 400},       {Code::kNotFound, 404},
      {Code::kWrongState, 409},      {Code::kBusy, 429},           {Code::kNoCells, 503},
      {Code::kGrammar, 422},         {Code::kUnsupported, 501},    {Code::kEngine, 500},
      {Code::kForbidden, 403},       {Code::kWrongHost, 421},      {Code::kUnauthenticated, 401},
      {Code::kMediaType, 415},       {Code::kMethod, 405},         {Code::kGone, 410},
      {Code::kStale, 409},           {Code::kAlreadyResumed, 409}, {Code::kPaused, 409},
      {Code::kIdempotency, 422},     {Code::kDraining, 503},       {Code::kModelNotFound, 404},
      {Code::kContextLength, 400},
  };
  for (const auto& [code, status] : expected) EXPECT_EQ(http_status(Error{code, "m", ""}), status) << to_string(code);
  EXPECT_EQ(http_status(Error{Code::kTooLarge, "m", "", false, std::string(kWholeBody)}), 413);
}

TEST(HttpError, EveryCodeHasAStatusAndAName) {
  for (int i = 0; i <= static_cast<int>(kLast); ++i) {
    const WireError wire = wire_error(Error{static_cast<Code>(i), "m", ""});
    EXPECT_GE(wire.status, 400);
    EXPECT_LE(wire.status, 599);
    EXPECT_FALSE(wire.code.empty());
    EXPECT_FALSE(wire.type.empty());
  }
}

// openai-python posts again, three times, what is answered with 408, 409, 429 or 5xx and does not say otherwise.
TEST(HttpError, NothingThatCannotWorkIsPostedAgain) {
  for (int i = 0; i <= static_cast<int>(kLast); ++i) {
    const Error error{static_cast<Code>(i), "m", ""};
    const auto headers = headers_of(error);
    const int status = http_status(error);
    if (status == 409 || status == 501 || status == 507) {
      EXPECT_EQ(headers.at("x-should-retry"), "false") << to_string(error.code);
    }
    if (status == 429 || status == 503) {
      EXPECT_EQ(headers.at("Retry-After"), "1") << to_string(error.code);
      EXPECT_FALSE(headers.contains("x-should-retry"));
    }
    if (status >= 400 && status < 408) {
      EXPECT_TRUE(headers.empty());
    }
  }
  EXPECT_TRUE(headers_of(Error{Code::kEngine, "m", "", false}).contains("x-should-retry"));
  EXPECT_TRUE(headers_of(Error{Code::kEngine, "m", "", true}).empty());
}

TEST(HttpError, EverythingStandsInsideError) {
  const Error error{Code::kInvalidArgument, "top_p must be less", "it is 2", false, "top_p"};
  EXPECT_EQ(to_text(error_object(error)),
            R"({"error":{"message":"top_p must be less","type":"invalid_request_error","code":"invalid_argument",)"
            R"("param":"top_p","fermata":{"detail":"it is 2"}}})");
  json::object record;
  record["pause_id"] = "pau_1";
  EXPECT_EQ(to_text(error_object(Error{Code::kPaused, "paused", ""}, record)),
            R"({"error":{"message":"paused","type":"invalid_request_error","code":"generation_paused",)"
            R"("param":null,"fermata":{"pause_id":"pau_1"}}})");
}

TEST(HttpError, TheTableSaysNothingTwice) {
  std::istringstream table(error_table());
  std::set<std::string> seen;
  for (std::string line; std::getline(table, line);) EXPECT_TRUE(seen.insert(line).second) << line;
  EXPECT_TRUE(seen.contains("| 503 | `overloaded` | `server_error` | after `Retry-After` |"));
}

TEST(HttpError, AnErrorAboutTheBodyNamesNoField) {
  const auto value = parse_json("{");
  EXPECT_EQ(wire_error(value.error()).param, "");
}

TEST(HttpError, IsJsonWhateverItQuotes) {
  const std::string text = to_text(error_object(Error{Code::kForbidden, "origin \xFF\"\n", "\x80", false, "\xC3"}));
  EXPECT_TRUE(parse_json(text)) << text;
}

}  // namespace
}  // namespace fermata::api
