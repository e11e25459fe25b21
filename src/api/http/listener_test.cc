#include "api/http/listener.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/http/http_test_server.h"

namespace fermata::api {
namespace {

TEST(Listener, AnswersRequestsOfOneConnectionOneAfterTheOther) {
  TestServer server;
  TestClient client(server.port());
  for (int i = 0; i < 3; ++i) {
    const Reply reply = client.ask(post("/echo/a%2Fb?x=1%202&y=", "{}"));
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, "POST /echo/a/b part=a/b x=1 2 y= by=/local body={}");
    EXPECT_EQ(reply["connection"], "");
    EXPECT_EQ(reply["x-content-type-options"], "nosniff");
  }
  EXPECT_EQ(server.counts().n_accepted, 1u);
  EXPECT_EQ(server.counts().n_requests, 3u);
}

TEST(Listener, AnswersPipelinedRequestsInOrder) {
  TestServer server;
  TestClient client(server.port());
  std::string all;
  for (int i = 0; i < 100; ++i) {
    all.append(post("/echo/" + std::to_string(i), std::string(i, 'b'))).append(get("/echo"));
  }
  client.send(all);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(client.read_reply().body, "POST /echo/" + std::to_string(i) + " part=" + std::to_string(i) +
                                            " by=/local body=" + std::string(i, 'b'));
    EXPECT_EQ(client.read_reply().body, "GET /echo by=/local body=");
  }
}

TEST(Listener, KeepsWhatIsPipelinedBehindAStream) {
  TestServer server;
  TestClient client(server.port());
  client.send(get("/hold") + get("/echo"));
  client.read_until("first\n\n\r\n");
  server.until([&] { return server.n_held == 1; }, "the stream is open");
  client.send(post("/echo/1", "later"));
  server.release();
  EXPECT_EQ(client.read_until("0\r\n\r\n"), "c\r\ndata: last\n\n\r\n0\r\n\r\n");
  EXPECT_EQ(client.read_reply().body, "GET /echo by=/local body=");
  EXPECT_EQ(client.read_reply().body, "POST /echo/1 part=1 by=/local body=later");
}

TEST(Listener, ReadsRequestsThatComeByteByByte) {
  TestServer server;
  TestClient client(server.port());
  client.send_one_by_one(post("/echo/1", "hello"));
  EXPECT_EQ(client.read_reply().body, "POST /echo/1 part=1 by=/local body=hello");
  client.send_one_by_one(
      "PUT /echo/2 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: t\r\n\r\n");
  EXPECT_EQ(client.read_reply().body, "PUT /echo/2 part=2 by=/local body=abcde");
}

TEST(Listener, AsksForABodyThatWaitsForIt) {
  TestServer server;
  TestClient client(server.port());
  const std::string head =
      "POST /echo/1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 4\r\n"
      "Expect: 100-continue\r\n\r\n";
  client.send(head);
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("abcd");
  EXPECT_EQ(client.read_reply().body, "POST /echo/1 part=1 by=/local body=abcd");
  // Not asked for if the answer is known: the connection ends, as nobody knows whether the body comes.
  client.send("POST /none HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  const Reply reply = client.read_reply();
  EXPECT_EQ(reply.status, 404);
  EXPECT_EQ(reply["connection"], "close");
  EXPECT_TRUE(client.at_end());
}

TEST(Listener, KeepsTheConnectionAfterARefusalWithASmallBody) {
  TestServer server;
  TestClient client(server.port());
  EXPECT_EQ(client.ask(post("/none", std::string(1000, 'x'))).status, 404);
  const Reply reply = client.ask(post("/admin", "{}"));
  EXPECT_EQ(reply.status, 405);
  EXPECT_EQ(reply["allow"], "GET, HEAD");
  EXPECT_EQ(client.ask(post("/needs", "")).status, 400);
  EXPECT_EQ(client.ask(post("/needs", "1")).status, 200);
  EXPECT_EQ(server.counts().n_accepted, 1u);
  EXPECT_EQ(server.counts().n_refused, 3u);
}

TEST(Listener, RefusesALargeBodyWithoutReadingIt) {
  TestServer server;
  TestClient client(server.port());
  client.send("POST /none HTTP/1.1\r\nHost: localhost\r\nContent-Length: 16000000\r\n\r\n");
  EXPECT_EQ(client.read_reply().status, 404);
  EXPECT_TRUE(client.at_end());
  TestClient other(server.port());
  EXPECT_EQ(other
                .ask("POST /echo/1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
                     "16777217\r\n\r\n")
                .status,
            413);
  EXPECT_TRUE(other.at_end());
}

TEST(Listener, AnswersWhatIsMalformedAndCloses) {
  TestServer server;
  for (const std::string& bytes :
       {std::string("nonsense\r\n\r\n"), std::string("GET / HTTP/9.9\r\n\r\n"), std::string("GET / HTTP/1.1\r\n\r\n"),
        std::string("GET http://localhost/echo HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        std::string("GET /echo HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n"),
        std::string("GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        std::string("POST /echo/1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    "Transfer-Encoding: chunked\r\n\r\nzz\r\n")}) {
    TestClient client(server.port());
    const Reply reply = client.ask(bytes);
    EXPECT_EQ(reply.status, 400) << bytes;
    EXPECT_EQ(reply["connection"], "close") << bytes;
    EXPECT_EQ(reply.body.find("{\"error\":{\"message\":\""), 0u) << bytes;
    EXPECT_TRUE(client.at_end()) << bytes;
  }
  TestClient next(server.port());
  EXPECT_EQ(next.ask(get("/echo")).status, 200);
}

TEST(Listener, BoundsTheHeaders) {
  TestServer server;
  TestClient large(server.port());
  EXPECT_EQ(large.ask(get("/echo", "X: " + std::string(40'000, 'x') + "\r\n")).status, 431);
  EXPECT_TRUE(large.at_end());
  std::string many;
  for (int i = 0; i < 101; ++i) many += "X" + std::to_string(i) + ": 1\r\n";
  TestClient crowded(server.port());
  EXPECT_EQ(crowded.ask(get("/echo", many)).status, 431);
  TestClient endless(server.port());
  endless.send("GET /echo HTTP/1.1\r\nX: ");
  while (endless.send(std::string(4096, 'x'))) {
  }
  SUCCEED();  // it was closed on us: nothing grows without bound
}

TEST(Listener, SpeaksHttp10) {
  TestServer server;
  TestClient client(server.port());
  const Reply kept = client.ask("GET /echo HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(kept.status, 200);
  EXPECT_EQ(kept["connection"], "keep-alive");
  client.send("GET /hold HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n");
  const Reply stream = client.read_reply();
  EXPECT_EQ(stream["transfer-encoding"], "");
  EXPECT_EQ(client.read_until("first\n\n"), "data: first\n\n");
  server.release();
  EXPECT_EQ(client.read_to_end(), "data: last\n\n");
}

TEST(Listener, AnswersHeadWithoutABody) {
  TestServer server;
  TestClient client(server.port());
  client.send("HEAD /echo HTTP/1.1\r\nHost: localhost\r\n\r\nHEAD /hold HTTP/1.1\r\nHost: localhost\r\n\r\n" +
              get("/echo"));
  EXPECT_EQ(client.read_reply(false)["content-length"], "26");
  EXPECT_EQ(client.read_reply(false).status, 200);
  EXPECT_EQ(client.read_reply().body, "GET /echo by=/local body=");
}

TEST(Listener, AnswersForAHandlerThatDoesNot) {
  TestServer server;
  TestClient client(server.port());
  const Reply threw = client.ask(get("/throw"));
  EXPECT_EQ(threw.status, 500);
  EXPECT_EQ(threw.body.find("secret"), std::string::npos);
  EXPECT_EQ(client.ask(get("/nothing")).status, 500);
  client.send(get("/cut"));
  client.read_head();
  EXPECT_EQ(client.read_to_end(), "4\r\nhalf\r\n");  // no last chunk: the client knows
  EXPECT_EQ(server.counts().n_failed, 3u);
}

TEST(Listener, NoHeaderValueBeginsALineOfItsOwn) {
  TestServer server;
  TestClient client(server.port());
  const Reply reply = client.ask(get("/header/a%0d%0aSet-Cookie:%20x"));
  EXPECT_EQ(reply["x-echo"], "a%0D%0ASet-Cookie: x");
  EXPECT_EQ(reply["Set-Cookie"], "");
}

TEST(Listener, SeesAClientThatClosesAtOnce) {
  for (const char* path : {"/hold", "/wait"}) {
    for (const bool with_reset : {false, true}) {
      TestServer server;
      TestClient client(server.port());
      client.send(get(path));
      server.until([&] { return server.n_held == 1; }, "the handler waits");
      with_reset ? client.reset() : client.close();
      server.until([&] { return server.n_gone == 1 && server.n_held == 0; }, "gone is seen, though nothing is written");
      server.until([&] { return server.listener->counts().n_connections == 0; }, "the connection ends");
    }
  }
}

TEST(Listener, AClosedSendingSideIsGoneButStillGetsAWholeAnswer) {
  TestServer server;
  TestClient client(server.port());
  client.send(get("/wait"));
  client.shut_write();
  EXPECT_EQ(client.read_reply().status, 200);
  EXPECT_TRUE(client.at_end());
  EXPECT_EQ(server.on_io([&] { return server.n_gone; }), 1);
}

TEST(Listener, SeesAReaderThatDoesNotRead) {
  ServerSetup setup;
  setup.listener.send_buffer_bytes = 16 * 1024;
  TestServer server(setup);
  TestClient client(server.port(), 16 * 1024);
  client.send(get("/flood"));
  // It writes until the kernel takes no more, and then waits.
  int n_before = -1;
  server.until(
      [&] {
        const bool rests = server.n_flood_pieces == n_before && server.n_held == 1;
        n_before = server.n_flood_pieces;
        return rests && n_before > 0;
      },
      "the writer waits");
  EXPECT_EQ(server.on_io([&] { return server.n_gone; }), 0);
  server.until(
      [&] {
        server.clock.advance(milliseconds(limits::kHttpWriteStallMs));
        return server.n_gone == 1 && server.n_held == 0;
      },
      "it is given up");
}

TEST(Listener, WritesMoreThanTheKernelTakesAtOnce) {
  ServerSetup setup;
  setup.listener.send_buffer_bytes = 16 * 1024;
  TestServer server(setup);
  TestClient client(server.port());
  EXPECT_EQ(client.ask(get("/big")).body, std::string(2 << 20, 'b'));
  EXPECT_EQ(client.ask(get("/echo")).status, 200);
}

TEST(Listener, ClosesIdleConnections) {
  TestServer server;
  TestClient client(server.port());
  EXPECT_EQ(client.ask(get("/echo")).status, 200);
  server.on_io([&] { return server.clock.advance(milliseconds(limits::kHttpIdleMs - 1)), 0; });
  EXPECT_EQ(client.ask(get("/echo")).status, 200);
  server.until(
      [&] {
        server.clock.advance(milliseconds(limits::kHttpIdleMs));
        return server.listener->counts().n_connections == 0;
      },
      "it is closed");
  EXPECT_TRUE(client.at_end());
}

TEST(Listener, ClosesWhoSendsSlowly) {
  TestServer server;
  TestClient headers(server.port());
  headers.send("GET /echo HTTP/1.1\r\nX-A: b\r\n");
  TestClient body(server.port());
  body.send(
      "POST /echo/1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\nab");
  TestClient good(server.port());
  EXPECT_EQ(good.ask(get("/echo")).status, 200);
  server.until([&] { return server.listener->counts().n_connections == 3; }, "all are there");
  server.until(
      [&] {
        server.clock.advance(milliseconds(limits::kHttpBodyReadMs));
        return server.listener->counts().n_connections == 0;
      },
      "all are closed");
  const std::string told = headers.read_to_end() + body.read_to_end();
  EXPECT_NE(told.find("HTTP/1.1 408"), std::string::npos);
}

TEST(Listener, TellsWhoIsTooMany) {
  ServerSetup setup;
  setup.listener.limits.connections_max = 2;
  TestServer server(setup);
  TestClient first(server.port()), second(server.port());
  EXPECT_EQ(first.ask(get("/echo")).status, 200);
  EXPECT_EQ(second.ask(get("/echo")).status, 200);
  {
    TestClient third(server.port());
    EXPECT_EQ(third.ask(get("/echo")).status, 503);
    EXPECT_TRUE(third.at_end());
  }
  first.close();
  server.until([&] { return server.listener->counts().n_connections == 1; }, "room again");
  TestClient fourth(server.port());
  EXPECT_EQ(fourth.ask(get("/echo")).status, 200);
}

TEST(Listener, BoundsTheBodiesItReadsTogether) {
  ServerSetup setup;
  setup.listener.limits.bodies_bytes_max = 1000;
  TestServer server(setup);
  TestClient first(server.port()), second(server.port());
  const std::string whole = post("/echo/1", std::string(800, 'x'));
  first.send(whole.substr(0, whole.size() - 1));
  server.until([&] { return server.listener->counts().n_connections == 2; }, "both are there");
  // Whichever comes second has no room: the first is read before, since its bytes were there before.
  EXPECT_EQ(second.ask(whole).status, 503);
  first.send("x");
  EXPECT_EQ(first.read_reply().status, 200);
  TestClient third(server.port());
  EXPECT_EQ(third.ask(whole).status, 200);
}

TEST(Listener, BoundsTheRequestsOfAConnection) {
  ServerSetup setup;
  setup.listener.limits.requests_per_connection_max = 2;
  TestServer server(setup);
  TestClient client(server.port());
  client.send(get("/echo") + get("/echo") + get("/echo"));
  EXPECT_EQ(client.read_reply()["connection"], "");
  EXPECT_EQ(client.read_reply()["connection"], "close");
  EXPECT_TRUE(client.at_end());
}

TEST(Listener, Serves200AtOnce) {
  TestServer server;
  std::vector<TestClient> clients;
  for (int i = 0; i < 200; ++i) clients.emplace_back(server.port());
  for (auto& client : clients) client.send(get("/hold"));
  server.until([&] { return server.n_held == 200; }, "all are held");
  server.release();
  for (auto& client : clients) EXPECT_EQ(client.read_reply().body, "data: first\n\ndata: last\n\n");
  for (int i = 0; i < 200; ++i) clients[i].send(post("/echo/" + std::to_string(i), "b"));
  for (int i = 0; i < 200; ++i) {
    const std::string number = std::to_string(i);
    std::string wanted = "POST /echo/";
    wanted.append(number).append(" part=").append(number).append(" by=/local body=b");
    EXPECT_EQ(clients[i].read_reply().body, wanted);
  }
}

TEST(Listener, AStopClosesIdleConnectionsAndLetsStreamsEnd) {
  TestServer server;
  TestClient idle(server.port()), busy(server.port());
  EXPECT_EQ(idle.ask(get("/echo")).status, 200);
  busy.send(get("/hold"));
  server.until([&] { return server.n_held == 1; }, "the stream is open");
  auto stopped = server.begin_stop(milliseconds(20'000));
  EXPECT_TRUE(idle.at_end());
  EXPECT_EQ(stopped.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  server.release();
  EXPECT_EQ(busy.read_reply().body, "data: first\n\ndata: last\n\n");
  EXPECT_TRUE(busy.at_end());
  EXPECT_EQ(stopped.get(), 0u);
}

TEST(Listener, AStopCutsWhatDoesNotEnd) {
  TestServer server;
  TestClient client(server.port());
  client.send(get("/hold"));
  server.until([&] { return server.n_held == 1; }, "the stream is open");
  EXPECT_EQ(server.stop(milliseconds(1)), 1u);
  EXPECT_EQ(server.on_io([&] { return server.n_gone; }), 1);
  server.until([&] { return server.listener->counts().n_connections == 0; }, "it has ended");
  EXPECT_EQ(client.read_to_end().find("last"), std::string::npos);
}

TEST(Address, IsOneOrLocalhost) {
  EXPECT_EQ(parse_address("localhost")->to_string(), "127.0.0.1");
  EXPECT_EQ(parse_address("::1")->to_string(), "::1");
  for (const char* none : {"example.com", "", "127.1", "[::1]", "127.0.0.1:80"}) {
    const auto address = parse_address(none);
    ASSERT_FALSE(address) << none;
    EXPECT_EQ(address.error().field, "host");
  }
}

TEST(Listener, ServesStrangersOnlyWithKeys) {
  boost::asio::io_context io;
  const ManualClock clock;
  const Router router;
  const auto render = [](const Error&) { return HttpResponse(); };
  const Guard open = Guard::make({}).value();
  const auto at = [](const char* host, std::uint16_t port = 0) {
    return ListenerOptions{parse_address(host).value(), port, {}, 0};
  };
  for (const char* host : {"0.0.0.0", "::", "192.0.2.1", "::ffff:127.0.0.1"}) {
    auto bound = Listener::bind(io.get_executor(), clock, router, open, render, at(host));
    ASSERT_FALSE(bound) << host;
    EXPECT_EQ(bound.error().code, Code::kInvalidArgument) << host;
  }
  EXPECT_TRUE(Listener::bind(io.get_executor(), clock, router, open, render, at("localhost")));
  GuardOptions options;
  options.keys =
      std::make_shared<ApiKeys>(ApiKeys::parse(ApiKeys::make_key("a", "", {Scope::kUse}).value().line).value());
  const Guard closed = Guard::make(options).value();
  auto bound = Listener::bind(io.get_executor(), clock, router, closed, render, at("0.0.0.0"));
  ASSERT_TRUE(bound);
  EXPECT_FALSE(Listener::bind(io.get_executor(), clock, router, closed, render, at("0.0.0.0", (*bound)->port())));
}

}  // namespace
}  // namespace fermata::api
