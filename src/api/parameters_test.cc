#include "api/parameters.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <set>

#include "api/openapi/openapi.h"
#include "api/routes.h"

namespace fermata::api {
namespace {

HttpRequest asking(std::map<std::string, std::string, std::less<>> query) {
  HttpRequest request;
  request.query = std::move(query);
  return request;
}

TEST(Parameters, ThoseThatThereAreMayBeLeftOut) {
  const std::vector<std::string> known{"from", "limit"};
  EXPECT_TRUE(check_parameters(asking({}), known));
  EXPECT_TRUE(check_parameters(asking({{"limit", "no number"}}), known)) << "its value is its reader's affair";
  EXPECT_TRUE(check_parameters(asking({{"from", "1"}, {"limit", ""}}), known));
  EXPECT_TRUE(check_parameters(asking({}), {}));
}

TEST(Parameters, OneThatThereIsNotIsNamedWithThoseThatThereAre) {
  const std::vector<std::string> known{"from", "limit"};
  const Error misspelt = check_parameters(asking({{"from", "1"}, {"limt", "5"}}), known).error();
  EXPECT_EQ(misspelt.code, Code::kInvalidArgument);
  EXPECT_EQ(misspelt.field, "limt");
  EXPECT_EQ(misspelt.message, "unknown parameter limt; did you mean limit? this call has from, limit");
  EXPECT_EQ(check_parameters(asking({{"x", ""}}), known).error().message,
            "unknown parameter x; this call has from, limit");
  EXPECT_EQ(check_parameters(asking({{"limit", "5"}}), {}).error().message,
            "unknown parameter limit; this call has none");
  EXPECT_EQ(check_parameters(asking({{"Limit", "5"}}), known).error().field, "Limit") << "names have a case";
  EXPECT_EQ(check_parameters(asking({{"", "5"}}), known).error().field, "\"\"");
  const Error long_one = check_parameters(asking({{std::string(8000, 'x'), ""}}), known).error();
  EXPECT_LT(long_one.message.size(), 200u) << "an error does not give back all that came";
}

TEST(Parameters, OneThatComesTwiceIsNamed) {
  HttpRequest twice = asking({{"from", "1"}, {"limit", "5"}});
  twice.repeated = "limit";
  const std::vector<std::string> known{"from", "limit"};
  EXPECT_EQ(check_parameters(twice, known).error().field, "limit");
  twice.query["x"] = "";
  EXPECT_EQ(check_parameters(twice, known).error().field, "x") << "what there is not comes first";
}

// What calls do with them is tried over sockets, in tests/client/test_openapi.py.
TEST(Parameters, OfACallAreThoseItIsDescribedWith) {
  boost::asio::io_context io;
  ManualClock clock;
  Desk desk(io.get_executor(), clock, {});
  Router router;
  add_routes(router, desk, [] { return std::string(); });
  const auto of = [&](std::string_view path) { return query_parameters(*router.find("GET", path).route); };
  EXPECT_EQ(of("/v1/sessions"), (std::vector<std::string>{"after", "limit", "order"})) << "of a shared description";
  EXPECT_EQ(of("/v1/generations/x/inspect"), std::vector<std::string>{"top"});
  EXPECT_EQ(of("/v1/generations/x/events"), std::vector<std::string>{"from"}) << "a header is none";
  EXPECT_EQ(of("/v1/generations/x"), std::vector<std::string>{});
}

}  // namespace
}  // namespace fermata::api
