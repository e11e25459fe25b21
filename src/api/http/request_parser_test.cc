#include "api/http/request_parser.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "api/http/chunk_decoder.h"
#include "api/http/http_text.h"

namespace fermata::api {
namespace {

using State = RequestParser::State;

// Gives `bytes` in pieces of `step` bytes, with what was not taken before; returns what belongs to no request.
std::string feed(RequestParser& parser, std::string_view bytes, std::size_t step = 1'000'000) {
  std::string pending;
  while (!bytes.empty() && parser.state() != State::kDone && parser.state() != State::kFailed) {
    pending += bytes.substr(0, step);
    bytes.remove_prefix(std::min(step, bytes.size()));
    for (std::size_t n = 1; n > 0 && !pending.empty();) {
      n = parser.put(pending);
      pending.erase(0, n);
    }
  }
  return pending.append(bytes);
}

int status_of(std::string_view bytes) {
  int status = -1;
  for (const std::size_t step : {1'000'000, 7, 1}) {
    RequestParser parser({});
    feed(parser, bytes, step);
    const int now = parser.state() == State::kFailed ? parser.failure().status
                    : parser.state() == State::kDone ? 200
                                                     : 0;
    EXPECT_TRUE(status < 0 || now == status) << "depends on how the bytes are cut: " << bytes;
    status = now;
  }
  return status;
}

int status_with(std::string_view headers, std::string_view body = "") {
  return status_of("POST / HTTP/1.1\r\nHost: a\r\n" + std::string(headers) + "\r\n" + std::string(body));
}

TEST(RequestParser, ReadsARequestHoweverItIsCut) {
  for (const std::size_t step : {1, 2, 3, 5, 17, 1000}) {
    RequestParser parser({});
    const std::string rest = feed(parser,
                                  "\r\nPOST /a%20b/c?x=%41&y=1+2&x=B&z HTTP/1.1\r\nHost: a\r\nX-Two: 1\r\nx-two:  2 "
                                  "\r\nContent-Length: 5\r\n\r\nhelloGET",
                                  step);
    ASSERT_EQ(parser.state(), State::kDone) << parser.failure().error.message;
    EXPECT_EQ("GET", rest.substr(0, 3));
    HttpRequest& request = parser.request();
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.path, "/a b/c");
    EXPECT_EQ(parser.raw_path(), "/a%20b/c");
    EXPECT_EQ(request.parameter("x"), "B");
    EXPECT_EQ(request.parameter("y"), "1 2");
    EXPECT_EQ(request.parameter("z"), "");
    EXPECT_EQ(request.header("x-two"), "1, 2");
    EXPECT_EQ(request.body, "hello");
    EXPECT_TRUE(parser.keep_alive());
  }
}

TEST(RequestParser, TheLengthOfABodyIsToldInOneWayOnly) {
  EXPECT_EQ(status_with("Content-Length: 2\r\n", "ab"), 200);
  EXPECT_EQ(status_with("Transfer-Encoding: chunked\r\n", "1\r\na\r\n0\r\n\r\n"), 200);
  EXPECT_EQ(status_with("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), 400);
  EXPECT_EQ(status_with("Transfer-Encoding: chunked\r\nContent-Length: 2\r\n", "0\r\n\r\n"), 400);
  EXPECT_EQ(status_with("Content-Length: 2\r\nContent-Length: 2\r\n", "ab"), 400);
  EXPECT_EQ(status_with("Content-Length: 2, 2\r\n", "ab"), 400);
  EXPECT_EQ(status_with("Content-Length: 2\r\nContent-Length: 3\r\n", "ab"), 400);
  for (const char* length : {"-1", "+1", "0x1", "1 ", "", "99999999999999999999999", "1a"}) {
    const int status = status_with("Content-Length: " + std::string(length) + "\r\n", "a");
    EXPECT_EQ(status, std::string_view(length) == "1 " ? 200 : 400)
        << length;  // blanks around a value are no part of it
  }
  for (const char* coding :
       {"gzip", "gzip, chunked", "chunked, chunked", "xchunked", "identity", "chunked;q=1", "\"chunked\""}) {
    EXPECT_EQ(status_with("Transfer-Encoding: " + std::string(coding) + "\r\n", "0\r\n\r\n"), 400) << coding;
  }
  EXPECT_EQ(status_with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), 400);
  EXPECT_EQ(status_with("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"), 400);
  EXPECT_EQ(status_of("POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400);
}

TEST(RequestParser, RefusesDoubtfulHeads) {
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), 200);
  EXPECT_EQ(status_of("GET / HTTP/1.1\nHost: a\n\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\nX:\r\n folded\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\nX:\r\n\t\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\nX:\r\n\r\n"), 200);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.0\r\n\r\n"), 200);  // the guard wants a host all the same
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET * HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"), 200);
  EXPECT_EQ(status_of("CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET /%4 HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET /%ff HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET /?a=%c0%80 HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of(std::string("GET / HTTP/1.1\r\nHost: a\r\nX: a") + '\0' + "b\r\n\r\n"), 400);
  std::string query = "/?";
  for (int i = 0; i < 65; ++i) query += "a=b&";
  EXPECT_EQ(status_of("GET " + query + " HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
}

TEST(RequestParser, KeepsTheNameThatComesTwiceInAQuery) {
  const auto repeated = [](const std::string& query) {
    RequestParser parser({});
    feed(parser, "GET /?" + query + " HTTP/1.1\r\nHost: a\r\n\r\n");
    return parser.request().repeated;
  };
  EXPECT_EQ(repeated("a=1&b=2&c"), std::nullopt);
  EXPECT_EQ(repeated("a=1&b=2&%61=1"), "a") << "also with the same value";
  EXPECT_EQ(repeated("=1&=2"), "");
}

TEST(RequestParser, BoundsEverySize) {
  const std::string line = "GET / HTTP/1.1\r\nHost: a\r\n";
  EXPECT_EQ(status_of(line + "X: " + std::string(31'000, 'x') + "\r\n\r\n"), 200);
  EXPECT_EQ(status_of(line + "X: " + std::string(33'000, 'x') + "\r\n\r\n"), 431);
  EXPECT_EQ(status_of(line + "X: " + std::string(17'000, 'x') + "\r\nY: " + std::string(17'000, 'x') + "\r\n\r\n"),
            431);
  std::string empty_lines;
  for (int i = 0; i < 20'000; ++i) empty_lines += "\r\n";
  EXPECT_EQ(status_of(empty_lines), 431);
  std::string many;
  for (int i = 0; i < 100; ++i) many += "X: 1\r\n";
  EXPECT_EQ(status_of(line + many + "\r\n"), 431);
  EXPECT_EQ(status_with("Content-Length: 16777217\r\n"), 413);
  EXPECT_EQ(status_with("Transfer-Encoding: chunked\r\n", "1000001\r\n"), 413);
  EXPECT_EQ(status_with("Transfer-Encoding: chunked\r\n", "1;" + std::string(40'000, 'x')), 413);
  EXPECT_EQ(status_with("Transfer-Encoding: chunked\r\n", "0\r\nX: " + std::string(40'000, 'x')), 413);
}

TEST(RequestParser, ChunksAreReadStrictly) {
  const auto status = [](std::string_view body) { return status_with("Transfer-Encoding: chunked\r\n", body); };
  EXPECT_EQ(status("3\r\nabc\r\n0\r\n\r\n"), 200);
  EXPECT_EQ(status("0003;a=\"b\"\r\nabc\r\n000\r\nT: x\r\nU: y\r\n\r\n"), 200);
  EXPECT_EQ(status("0\r\n"), 0);
  EXPECT_EQ(status("0\r\n\r"), 0);
  for (const char* body :
       {"3\nabc\r\n0\r\n\r\n", "3\r\nabcd\r\n0\r\n\r\n", "3 \r\nabc\r\n0\r\n\r\n", "\r\n", ";\r\n", "0x3\r\nabc\r\n",
        "-1\r\n", "000000001\r\na\r\n", "0\r\n\n", "0\r\nT: x\n\r\n", "1\r\na\n", "ffffffffffffffff\r\n"}) {
    EXPECT_EQ(status(body), 400) << body;
  }
}

TEST(RequestParser, ATrailerAddsNothingToTheHeaders) {
  RequestParser parser({});
  feed(parser,
       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nAuthorization: Bearer x\r\nHost: "
       "b\r\n\r\n");
  ASSERT_EQ(parser.state(), State::kDone);
  EXPECT_EQ(parser.request().header("authorization"), "");
  EXPECT_EQ(parser.request().header("host"), "a");
}

TEST(RequestParser, StopsBehindTheHeaderSoThatItCanBeJudged) {
  RequestParser parser({});
  const std::string bytes = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
  EXPECT_EQ(parser.put(bytes), bytes.size() - 3);
  EXPECT_EQ(parser.state(), State::kBody);
  EXPECT_EQ(parser.body_length(), 3u);
  EXPECT_EQ(parser.request().body, "");
}

TEST(HttpText, TellsUtf8) {
  for (const char* good : {"", "a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(is_utf8(good)) << good;
  }
  for (const char* bad : {"\x80", "\xc0\x80", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                          "\xf5\x80\x80\x80", "\xf0\x80\x80\x80", "\xe2\x82", "\xff"}) {
    EXPECT_FALSE(is_utf8(bad)) << ascii_excerpt(bad);
  }
}

TEST(HttpText, ListsTokens) {
  EXPECT_TRUE(lists_token("keep-alive, Upgrade", "upgrade"));
  EXPECT_FALSE(lists_token("keep-alive, Upgrades", "upgrade"));
  EXPECT_FALSE(lists_token("", "upgrade"));
  EXPECT_EQ(ascii_excerpt("a\n\xff b", 3), "a??...");
}

}  // namespace
}  // namespace fermata::api
