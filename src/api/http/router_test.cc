#include "api/http/router.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/http/response_head.h"

namespace fermata::api {
namespace {

boost::asio::awaitable<void> nothing(HttpRequest, Exchange&) { co_return; }

Router made() {
  Router router;
  router.add("GET", "/v1/generations", Scope::kUse, nothing);
  router.add("GET", "/v1/generations/*", Scope::kUse, nothing);
  router.add("DELETE", "/v1/generations/*", Scope::kUse, nothing);
  router.add("POST", "/v1/generations/*/pause", Scope::kUse, nothing);
  router.add("POST", "/v1/generations/*/*", Scope::kAdmin, nothing);
  router.add("GET", "/v1/generations/all", Scope::kReview, nothing);
  router.add("GET", "/v1/models/**", Scope::kUse, nothing);
  return router;
}

TEST(Router, FillsTheParts) {
  const Router router = made();
  EXPECT_EQ(router.find("POST", "/v1/generations/client:xyz/pause").parts, std::vector<std::string>{"client:xyz"});
  EXPECT_EQ(router.find("GET", "/v1/generations/a%2Fb").parts, std::vector<std::string>{"a/b"});
  EXPECT_EQ(router.find("GET", "/v1/models/org/name%20x").parts, std::vector<std::string>{"org/name x"});
}

TEST(Router, AWordIsNearerThanAnything) {
  const Router router = made();
  EXPECT_EQ(router.find("POST", "/v1/generations/a/pause").route->scope, Scope::kUse);
  EXPECT_EQ(router.find("POST", "/v1/generations/a/other").route->scope, Scope::kAdmin);
  EXPECT_EQ(router.find("GET", "/v1/generations/all").route->scope, Scope::kReview);
  EXPECT_EQ(router.find("GET", "/v1/generations/%61ll").route->scope, Scope::kUse);  // only what is written so
}

TEST(Router, ToldApartWhatIsNotThereAndWhatCannotBeDone) {
  const Router router = made();
  for (const char* path : {"", "*", "/", "/v1", "/v1/generations/", "/v1/generations//pause", "/v1/models/",
                           "/v1/models", "//v1/generations", "/v1/generations/../generations", "/v1/Generations"}) {
    const auto match = router.find("GET", path);
    EXPECT_EQ(match.route, nullptr) << path;
    EXPECT_EQ(match.allow, path == std::string("/v1/generations//pause") ? "" : match.allow) << path;
  }
  EXPECT_EQ(router.find("PATCH", "/v1/generations/a").allow, "GET, HEAD, DELETE");
  EXPECT_EQ(router.find("GET", "/v1/generations/a/pause").allow, "POST");
  EXPECT_EQ(router.find("GET", "/nowhere").allow, "");
  EXPECT_NE(router.find("HEAD", "/v1/generations").route, nullptr);
  EXPECT_EQ(router.find("get", "/v1/generations").route, nullptr);
}

TEST(Router, KnowsWhatIsMeantByAPathThatIsNearlyThere) {
  const Router router = made();
  for (const char* path : {"/generations", "/v1/v1/generations", "/v1/generations/", "/generations/"})
    EXPECT_EQ(router.meant(path), "/v1/generations") << path;
  EXPECT_EQ(router.meant("/generations/client:x/pause"), "/v1/generations/client:x/pause") << "whatever the method";
  EXPECT_EQ(router.meant("/models/org/name"), "/v1/models/org/name");
  for (const char* path : {"", "/", "/v1", "/v1/", "/nowhere", "generations", "/v1/v1", "//", "/v2/generations"})
    EXPECT_EQ(router.meant(path), "") << path;
}

TEST(ResponseHead, FramesTheMessageItself) {
  HttpResponse response;
  response.headers = {{"Content-Length", "0"}, {"Transfer-Encoding", "x"}, {"Connection", "x"}, {"X-A", "b\r\nc: d"}};
  response.body = "abc";
  EXPECT_EQ(response_head(response, {Framing::kLength, false, true, "D"}),
            "HTTP/1.1 200 OK\r\ndate: D\r\ncontent-type: application/json\r\ncontent-length: 3\r\nconnection: close\r\n"
            "x-content-type-options: nosniff\r\nX-A: b%0D%0Ac: d\r\ncache-control: no-store\r\n\r\n");
  response.status = 204;
  EXPECT_EQ(response_head(response, {Framing::kLength, true, true, "D"}).find("content-length"), std::string::npos);
}

TEST(ResponseHead, WritesDatesAsHttpWantsThem) {
  EXPECT_EQ(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(http_date(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
}

}  // namespace
}  // namespace fermata::api
