#include "api/http/guard.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/http/http_test_server.h"

// Each line of the safety rules as an attacker would try it, over a real socket.
namespace fermata::api {
namespace {

std::string with_host(std::string_view host, std::string_view path = "/echo") {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: " + std::string(host) + "\r\n\r\n";
}

int status(TestServer& server, const std::string& request) { return TestClient(server.port()).ask(request).status; }

struct Keyed {
  Keyed() {
    std::string text;
    for (const Made& who : {Made{"user", "acme", {Scope::kUse}}, Made{"desk", "acme", {Scope::kUse, Scope::kReview}},
                            Made{"boss", "other", {Scope::kAdmin}}}) {
      const auto made = ApiKeys::make_key(who.name, who.tenant, who.scopes).value();
      keys[who.name] = made.key;
      text += made.line + "\n";
    }
    setup.guard.keys = std::make_shared<ApiKeys>(ApiKeys::parse(text).value());
  }
  struct Made {
    std::string name, tenant;
    std::vector<Scope> scopes;
  };
  std::string bearer(const std::string& name) const { return "Authorization: Bearer " + keys.at(name) + "\r\n"; }
  std::map<std::string, std::string> keys;
  ServerSetup setup;
};

TEST(Guard, OnlyItsOwnNamesReachIt) {
  ServerSetup setup;
  setup.guard.hosts = {"LLM.example.com", "tight.example.com:8443"};
  TestServer server(setup);
  for (const char* ours : {"localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:8080", "[::1]", "[::1]:80",
                           "llm.example.com", "llm.example.com:443", "tight.example.com:8443"}) {
    EXPECT_EQ(status(server, with_host(ours)), 200) << ours;
  }
  for (const char* foreign : {"evil.com",
                              "localhost.evil.com",
                              "evil.localhost",
                              "localhost.",
                              "127.0.0.1.nip.io",
                              "127.0.0.2",
                              "0.0.0.0",
                              "[::]",
                              "localhost:0",
                              "localhost:99999",
                              "localhost:80a",
                              "localhost:",
                              "localhost@evil.com",
                              "localhost/evil",
                              "localhost, evil.com",
                              "[::1",
                              "2130706433",
                              "tight.example.com",
                              "tight.example.com:80",
                              "[::1]evil",
                              "::1"}) {
    EXPECT_EQ(status(server, with_host(foreign)), 421) << foreign;
    EXPECT_EQ(status(server, with_host(foreign, "/open")), 421) << foreign;     // every route
    EXPECT_EQ(status(server, with_host(foreign, "/nowhere")), 421) << foreign;  // and none
    EXPECT_EQ(status(server, with_host(foreign, "/ws")), 421) << foreign;
  }
  EXPECT_EQ(status(server, "GET /echo HTTP/1.0\r\n\r\n"), 421);
}

TEST(Guard, AProxysWordsAboutTheHostCountForNothing) {
  TestServer server;
  EXPECT_EQ(status(server,
                   "GET /echo HTTP/1.1\r\nHost: evil.com\r\nX-Forwarded-Host: localhost\r\n"
                   "Forwarded: host=localhost\r\n\r\n"),
            421);
}

TEST(Guard, NoForeignPageReachesIt) {
  TestServer server;
  for (const char* foreign :
       {"Origin: http://evil.com", "Origin: null", "Origin: ", "Origin: http://localhost.evil.com",
        "Origin: http://localhost:3000", "Origin: https://localhost", "Origin: file://", "Origin: http://127.0.0.1",
        "Origin: localhost", "Origin: http://localhost/", "Origin: http://localhost http://evil.com",
        "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Sec-Fetch-Site: something",
        "Origin: http://localhost\r\nSec-Fetch-Site: cross-site", "Origin: chrome-extension://abc"}) {
    const std::string line = std::string(foreign) + "\r\n";
    EXPECT_EQ(status(server, get("/echo", line)), 403) << foreign;
    EXPECT_EQ(status(server, post("/echo/1", "{}", line)), 403) << foreign;
    EXPECT_EQ(status(server, get("/open", line)), 403) << foreign;
    EXPECT_EQ(status(server, "OPTIONS /echo HTTP/1.1\r\nHost: localhost\r\nAccess-Control-Request-Method: POST\r\n" +
                                 line + "\r\n"),
              403)
        << foreign;
    EXPECT_EQ(
        status(server, get("/ws", line + "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                                         "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n")),
        403)
        << foreign;
  }
  EXPECT_EQ(server.counts().n_requests, 0u);  // no handler heard of any of it
  for (const char* own : {"Origin: http://localhost", "Origin: http://localhost:80", "Sec-Fetch-Site: same-origin",
                          "Sec-Fetch-Site: none", "Origin: http://LOCALHOST\r\nSec-Fetch-Site: same-origin"}) {
    const Reply reply = TestClient(server.port()).ask(get("/echo", std::string(own) + "\r\n"));
    EXPECT_EQ(reply.status, 200) << own;
    EXPECT_EQ(reply["access-control-allow-origin"], "") << own;
  }
  EXPECT_EQ(status(server, "GET /echo HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nOrigin: http://127.0.0.1:8080\r\n\r\n"), 200);
  EXPECT_EQ(status(server, "GET /echo HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nOrigin: http://localhost:8080\r\n\r\n"), 403);
}

TEST(Guard, AnAllowedPageMayCall) {
  ServerSetup setup;
  setup.guard.origins = {"https://app.example.com"};
  TestServer server(setup);
  const std::string origin = "Origin: https://app.example.com\r\nSec-Fetch-Site: cross-site\r\n";
  const Reply reply = TestClient(server.port()).ask(get("/echo", origin));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply["access-control-allow-origin"], "https://app.example.com");
  EXPECT_EQ(reply["access-control-allow-credentials"], "");
  EXPECT_EQ(reply["vary"], "origin");
  const Reply asked =
      TestClient(server.port())
          .ask("OPTIONS /echo/1 HTTP/1.1\r\nHost: localhost\r\n" + origin +
               "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization\r\n\r\n");
  EXPECT_EQ(asked.status, 204);
  EXPECT_EQ(asked["access-control-allow-headers"], "authorization");
  const Reply missing = TestClient(server.port()).ask(get("/nowhere", origin));
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(missing["access-control-allow-origin"], "https://app.example.com");  // the page may read why
  for (const char* foreign : {"https://app.example.com.evil.com", "http://app.example.com",
                              "https://app.example.com:444", "https://evil-app.example.com"}) {
    const Reply refused = TestClient(server.port()).ask(get("/echo", "Origin: " + std::string(foreign) + "\r\n"));
    EXPECT_EQ(refused.status, 403) << foreign;
    EXPECT_EQ(refused["access-control-allow-origin"], "") << foreign;
  }
  // Without an origin there is nothing to ask before.
  EXPECT_EQ(status(server, "OPTIONS /echo HTTP/1.1\r\nHost: localhost\r\n\r\n"), 405);
  for (const char* wrong : {"*", "app.example.com", "https://a/b", "ftp://a", ""}) {
    EXPECT_FALSE(Guard::make({{}, {wrong}, {}})) << wrong;
  }
  EXPECT_FALSE(Guard::make({{"a/b"}, {}, {}}));
}

TEST(Guard, AFormOfAPageIsNoJson) {
  TestServer server;
  const auto with_type = [](std::string_view method, std::string_view type, std::string_view body) {
    return std::string(method) + " /echo/1 HTTP/1.1\r\nHost: localhost\r\n" + std::string(type) +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
  };
  for (const char* method : {"POST", "PUT", "DELETE"}) {
    for (const char* type : {"", "Content-Type: text/plain\r\n", "Content-Type: application/x-www-form-urlencoded\r\n",
                             "Content-Type: multipart/form-data; boundary=application/json\r\n",
                             "Content-Type: text/plain; application/json\r\n", "Content-Type: application/jsonp\r\n",
                             "Content-Type: application/json, text/plain\r\n",
                             "Content-Type: application/json; charset=utf-16\r\n", "Content-Type: \r\n"}) {
      EXPECT_EQ(status(server, with_type(method, type, "{}")), 415) << method << type;
      EXPECT_EQ(status(server, with_type(method, type, "")), 415) << method << type;  // without a body as well
    }
    for (const char* type :
         {"Content-Type: application/json\r\n", "content-type: Application/JSON; charset=UTF-8\r\n"}) {
      EXPECT_EQ(status(server, with_type(method, type, "{}")), 200) << method << type;
      EXPECT_EQ(status(server, with_type(method, type, "")), 200) << method << type;
    }
  }
}

TEST(Guard, WithoutAKeyNothingIsTold) {
  Keyed keyed;
  TestServer server(keyed.setup);
  const std::string key = keyed.keys["user"];
  for (const std::string& line :
       {std::string(), std::string("Authorization: Bearer\r\n"), std::string("Authorization: Bearer \r\n"),
        "Authorization: Bearer " + key.substr(0, key.size() - 1) + "\r\n", "Authorization: Bearer " + key + "x\r\n",
        "Authorization: Basic " + key + "\r\n", "Authorization: " + key + "\r\n", "X-Api-Key: " + key + "\r\n",
        "Cookie: key=" + key + "\r\n", "Authorization: Bearer " + std::string(9000, 'x') + "\r\n",
        "Authorization: Bearer a, Bearer " + key + "\r\n"}) {
    for (const char* path : {"/echo", "/admin", "/nowhere", "/ws"}) {
      const Reply reply = TestClient(server.port()).ask(get(path, line));
      EXPECT_EQ(reply.status, 401) << path << " " << line;  // the same for what is not there
      EXPECT_EQ(reply["www-authenticate"], "Bearer");
      EXPECT_EQ(reply.body.find(key), std::string::npos);
    }
    EXPECT_EQ(status(server, post("/echo/1", "{}", line)), 401) << line;
  }
  EXPECT_EQ(status(server, get("/echo?key=" + key + "&api_key=" + key)), 401);
  const Reply open = TestClient(server.port()).ask(get("/open"));
  EXPECT_EQ(open.body, "GET /open by=/ body=");  // nobody, of no tenant
}

TEST(Guard, AKeyHasItsTenantAndItsScopes) {
  Keyed keyed;
  TestServer server(keyed.setup);
  const auto ask = [&](const char* path, const char* who) {
    return TestClient(server.port()).ask(get(path, keyed.bearer(who)));
  };
  EXPECT_EQ(ask("/echo", "user").body, "GET /echo by=acme/user body=");
  EXPECT_EQ(ask("/echo", "desk").body, "GET /echo by=acme/desk body=");
  EXPECT_EQ(ask("/admin", "user").status, 403);
  EXPECT_EQ(ask("/admin", "desk").status, 403);
  EXPECT_EQ(ask("/admin", "boss").body, "GET /admin by=other/boss body=");
  EXPECT_EQ(ask("/echo", "boss").status, 403);  // scopes are what is written, no more
  EXPECT_EQ(status(server, get("/echo", "authorization: bearer  " + keyed.keys["user"] + "\r\n")), 200);
}

TEST(Guard, TheLastKeyIsNotTakenAway) {
  Keyed keyed;
  Guard guard = Guard::make(keyed.setup.guard).value();
  EXPECT_FALSE(guard.replace_keys(nullptr));
  EXPECT_FALSE(guard.replace_keys(std::make_shared<ApiKeys>()));
  EXPECT_TRUE(guard.has_keys());
  EXPECT_TRUE(guard.replace_keys(keyed.setup.guard.keys));
}

TEST(Guard, WhoseKeyIsGoneIsLetGoOfAtOnce) {
  Keyed keyed;
  TestServer server(keyed.setup);
  TestClient theirs(server.port()), others(server.port()), idle(server.port()), follows(server.port());
  EXPECT_EQ(idle.ask(get("/echo", keyed.bearer("user"))).status, 200);
  follows.send(get("/ws", keyed.bearer("user") +
                              "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"));
  EXPECT_EQ(follows.read_head().status, 101);
  theirs.send(get("/hold", keyed.bearer("user")));
  others.send(get("/hold", keyed.bearer("desk")));
  theirs.read_until("first\n\n\r\n");
  others.read_until("first\n\n\r\n");
  const std::vector<ApiKeys::Hash> gone = {keyed.setup.guard.keys->find(keyed.keys.at("user"))->hash};
  server.on_io([&] {
    server.listener->end_all_of(gone);
    return 0;
  });
  EXPECT_EQ(theirs.read_to_end(), "") << "without the last chunk: it is cut, not over";
  EXPECT_EQ(follows.read_bytes(4).substr(2), "\x03\xf0") << "1008";
  server.until([&] { return server.n_gone == 1 && server.n_held == 1; }, "its handler was told");
  server.release();
  EXPECT_EQ(others.read_until("0\r\n\r\n"), "c\r\ndata: last\n\n\r\n0\r\n\r\n");
  EXPECT_EQ(idle.ask(get("/echo", keyed.bearer("desk"))).status, 200) << "a line that nobody uses now is left alone";
}

TEST(Guard, WithoutKeysTheLocalUserMayDoAll) {
  TestServer server;
  EXPECT_EQ(TestClient(server.port()).ask(get("/admin")).body, "GET /admin by=/local body=");
}

}  // namespace
}  // namespace fermata::api
