// What a log is told of requests, and the ids that they have.
#include "api/http/answered.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/http/http_test_server.h"
#include "api/http/request_id.h"

namespace fermata::api {
namespace {

class Answered : public testing::Test {
 protected:
  Answered() {
    setup_.listener.noted_header = "x-echo";
    setup_.listener.answered = [this](const AnsweredRequest& request) { told_.push_back(request); };
  }
  // The only one, as the io thread told it.
  AnsweredRequest one(TestServer& server) {
    server.until([&] { return !told_.empty(); }, "a request is told of");
    return server.on_io([&] {
      EXPECT_EQ(told_.size(), 1u);
      return told_.empty() ? AnsweredRequest() : std::exchange(told_, {}).front();
    });
  }
  std::vector<AnsweredRequest> told_;  // io thread
  ServerSetup setup_;
};

TEST_F(Answered, AWholeAnswerIsToldWithoutItsQueryOrBody) {
  TestServer server(setup_);
  TestClient client(server.port());
  const Reply reply = client.ask(post("/echo/a%20b?secret=1", "{\"secret\":2}"));
  const AnsweredRequest told = one(server);
  EXPECT_EQ(told.method, "POST");
  EXPECT_EQ(told.path, "/echo/a%20b");
  EXPECT_EQ(told.status, 200);
  EXPECT_EQ(told.n_bytes, reply.body.size());
  EXPECT_EQ(told.key, "local");
  EXPECT_TRUE(told.is_whole);
  EXPECT_EQ(told.id, reply["x-request-id"]);
  EXPECT_EQ(told.id.substr(0, 4), "req_");
  EXPECT_EQ(told.id.size(), 4u + 32u);
  EXPECT_EQ(client.ask(get("/header/noted"))["x-echo"], "noted");
  EXPECT_EQ(one(server).noted, "noted");
}

TEST_F(Answered, ASaneIdOfTheClientIsTakenOver) {
  TestServer server(setup_);
  const auto id_for = [&](const std::string& theirs) {
    return TestClient(server.port()).ask(get("/echo", "x-request-id: " + theirs + "\r\n"))["x-request-id"];
  };
  const std::string longest(limits::kRequestIdBytesMax, 'a');
  for (const std::string& sane : {std::string("7"), std::string("6ba7b810-9dad-11d1-80b4-00c04fd430c8"), longest})
    EXPECT_EQ(id_for(sane), sane);
  std::set<std::string> ours;
  for (const std::string& odd :
       {std::string("a b"), std::string("a\"b"), std::string("\xC3\xA9"), longest + "a", std::string("a\\nb")})
    EXPECT_EQ(id_for(odd).substr(0, 4), "req_") << odd;
  for (int i = 0; i < 20; ++i) ours.insert(id_for(""));
  EXPECT_EQ(ours.size(), 20u);
}

TEST_F(Answered, WhatIsRefusedBecauseOfItsHeadKeepsItsId) {
  TestServer server(setup_);
  const std::string named = "Host: localhost\r\nx-request-id: mine/1\r\nContent-Type: application/json\r\n";
  const std::pair<const char*, int> wrong[] = {{"Content-Length: 999999999999\r\n", 413},
                                               {"Transfer-Encoding: gzip\r\n", 400}};
  for (const auto& [bad, status] : wrong) {
    const Reply reply = TestClient(server.port()).ask("POST /echo/a?secret=1 HTTP/1.1\r\n" + named + bad + "\r\n");
    EXPECT_EQ(reply.status, status) << bad;
    EXPECT_EQ(reply["x-request-id"], "mine/1") << bad;
    const AnsweredRequest told = one(server);
    EXPECT_EQ(told.id, "mine/1");
    EXPECT_EQ(told.path, "/echo/a");
  }
}

TEST_F(Answered, WhatIsRefusedIsToldToo) {
  TestServer server(setup_);
  EXPECT_NE(TestClient(server.port()).ask(get("/nowhere"))["x-request-id"], "");
  EXPECT_EQ(one(server).status, 404);
  EXPECT_NE(TestClient(server.port()).ask("no request\r\n\r\n")["x-request-id"], "");
  const AnsweredRequest garbled = one(server);
  EXPECT_EQ(garbled.status, 400);
  EXPECT_EQ(garbled.method, "");
  TestClient(server.port()).ask(get("/throw"));
  EXPECT_EQ(one(server).status, 500);
  TestClient(server.port()).ask(get("/" + std::string(5000, 'p')));
  EXPECT_EQ(one(server).path.size(), limits::kLogPathBytesMax + 3) << "cut, with three dots";
}

TEST_F(Answered, AStreamIsToldWhenItEndsWithItsTime) {
  TestServer server(setup_);
  TestClient client(server.port());
  client.send(get("/hold"));
  EXPECT_NE(client.read_until("first\n\n\r\n").find("x-request-id: req_"), std::string::npos);
  EXPECT_TRUE(server.on_io([&] { return told_.empty(); }));
  server.clock.advance(milliseconds(1500));
  server.release();
  const AnsweredRequest told = one(server);
  EXPECT_EQ(told.n_bytes, std::string("data: first\n\ndata: last\n\n").size());
  EXPECT_EQ(told.took, milliseconds(1500));
  EXPECT_TRUE(told.is_whole);
}

TEST_F(Answered, AClientThatWentIsToldAsThat) {
  TestServer server(setup_);
  {
    TestClient client(server.port());
    client.send(get("/hold"));
    client.read_until("first\n\n\r\n");
  }
  const AnsweredRequest in_the_middle = one(server);
  EXPECT_EQ(in_the_middle.status, 200);
  EXPECT_FALSE(in_the_middle.is_whole);
  {
    TestClient client(server.port());
    client.send(get("/wait"));
    server.until([&] { return server.n_held == 1; }, "it waits");
    client.reset();
  }
  const AnsweredRequest before_anything = one(server);
  EXPECT_EQ(before_anything.status, 499);
  EXPECT_FALSE(before_anything.is_whole);
  EXPECT_EQ(before_anything.cut_by, CutBy::kClient);
}

TEST_F(Answered, WhoLosesItsKeyIsNoClientThatWent) {
  const auto made = ApiKeys::make_key("ann", "acme", {Scope::kUse});
  setup_.guard.keys = std::make_shared<ApiKeys>(*ApiKeys::parse(made->line));
  const std::vector<ApiKeys::Hash> gone = {setup_.guard.keys->find(made->key)->hash};
  TestServer server(setup_);
  const auto loses = [&](const std::string& path, const std::string& begun) {
    TestClient client(server.port());
    client.send(get(path, "Authorization: Bearer " + made->key + "\r\n"));
    if (begun.empty())
      server.until([&] { return server.n_held == 1; }, "it waits");
    else
      client.read_until(begun);
    server.on_io([&] { server.listener->end_all_of(gone); });
    return one(server);
  };
  const AnsweredRequest in_the_middle = loses("/hold", "first\n\n\r\n");
  EXPECT_EQ(in_the_middle.status, 200);
  EXPECT_FALSE(in_the_middle.is_whole);
  EXPECT_EQ(in_the_middle.cut_by, CutBy::kKey);
  const AnsweredRequest before_anything = loses("/wait", "");
  EXPECT_EQ(before_anything.status, 401);
  EXPECT_EQ(before_anything.cut_by, CutBy::kKey);
}

TEST_F(Answered, AConnectionWithoutARequestIsNone) {
  TestServer server(setup_);
  { TestClient silent(server.port()); }
  {
    TestClient half(server.port());
    half.send("GET /ec");
  }
  server.until(
      [&] { return server.listener->counts().n_accepted == 2 && server.listener->counts().n_connections == 0; },
      "both ended");
  EXPECT_TRUE(server.on_io([&] { return told_.empty(); }));
}

}  // namespace
}  // namespace fermata::api
