#include "api/http/websocket.h"

#include <gtest/gtest.h>

#include <string>

#include "api/http/http_test_server.h"

namespace fermata::api {
namespace {

constexpr unsigned kText = 1, kBinary = 2, kClose = 8, kPing = 9, kPong = 10;

// A frame of a client: masked (with zeros), whole.
std::string frame(unsigned opcode, std::string_view payload) {
  std::string bytes(1, static_cast<char>(0x80 | opcode));
  if (payload.size() < 126) {
    bytes += static_cast<char>(0x80 | payload.size());
  } else {
    bytes += static_cast<char>(0x80 | 127);
    for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(payload.size() >> shift);
  }
  return bytes.append(4, '\0').append(payload);
}

struct Frame {
  unsigned opcode = 0;
  std::string payload;
};

class WebSocketClient : public TestClient {
 public:
  explicit WebSocketClient(TestServer& server, std::string_view more = "", int receive_buffer_bytes = 0)
      : TestClient(server.port(), receive_buffer_bytes) {
    send(get("/ws",
             "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
                 std::string(more)));
    head = read_head();
  }
  Frame read_frame() {
    const std::string start = read_bytes(2);
    if (start.size() < 2) return {};
    std::uint64_t n = start[1] & 0x7f;
    const std::size_t n_more = n == 126 ? 2 : n == 127 ? 8 : 0;
    if (n_more) n = 0;
    for (const char c : read_bytes(n_more)) n = n << 8 | static_cast<unsigned char>(c);
    return {static_cast<unsigned>(start[0] & 15), read_bytes(n)};
  }
  unsigned close_code() {
    for (;;) {
      const Frame got = read_frame();
      if (got.opcode == 0) return 0;
      if (got.opcode != kClose || got.payload.size() < 2) continue;
      return static_cast<unsigned char>(got.payload[0]) << 8 | static_cast<unsigned char>(got.payload[1]);
    }
  }
  Reply head;
};

TEST(WebSocket, ExchangesMessages) {
  TestServer server;
  WebSocketClient client(server);
  EXPECT_EQ(client.head.status, 101);
  EXPECT_EQ(client.head["Sec-WebSocket-Accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  for (const std::string& text :
       {std::string("a"), std::string(), std::string("\xc3\xa9"), std::string(100'000, 'x')}) {
    client.send(frame(kText, text));
    EXPECT_EQ(client.read_frame().payload, "echo:" + text);
  }
  client.send(frame(kPing, "p"));
  const Frame pong = client.read_frame();
  EXPECT_EQ(pong.opcode, kPong);
  EXPECT_EQ(pong.payload, "p");
}

TEST(WebSocket, AHandlerThatEndsClosesIt) {
  TestServer server;
  WebSocketClient client(server);
  client.send(frame(kText, "end"));
  EXPECT_EQ(client.close_code(), 1000u);
  client.send(frame(kClose, "\x03\xe8"));
  EXPECT_TRUE(client.at_end());
  client.close();
  server.until([&] { return server.listener->counts().n_connections == 0; }, "the connection ends");
}

TEST(WebSocket, SeesTheClientLeave) {
  for (int how = 0; how < 3; ++how) {
    TestServer server;
    WebSocketClient client(server);
    server.until([&] { return server.session != nullptr; }, "it is open");
    if (how == 0) client.send(frame(kClose, "\x03\xe8"));
    if (how == 1) client.close();
    if (how == 2) client.reset();
    server.until([&] { return !server.session; }, "its handler ends");
    server.until(
        [&] {
          server.clock.advance(milliseconds(1'000));
          return server.listener->counts().n_connections == 0;
        },
        "a client that says goodbye and stays is not waited for");
  }
}

TEST(WebSocket, RefusesWhatIsNoHandshake) {
  TestServer server;
  EXPECT_EQ(TestClient(server.port()).ask(get("/ws")).status, 400);
  EXPECT_EQ(TestClient(server.port())
                .ask(get("/ws",
                         "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 12\r\n"
                         "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"))
                .status,
            400);
  TestClient odd(server.port());
  const int status = odd.ask(get("/ws",
                                 "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                                 "Sec-WebSocket-Key: short\r\n"))
                         .status;
  EXPECT_EQ(status, 400);
}

TEST(WebSocket, BoundsWhatAClientSends) {
  TestServer server;
  {
    WebSocketClient client(server);
    client.send(frame(kText, std::string(limits::kWebSocketMessageBytesMax + 1, 'x')));
    EXPECT_EQ(client.close_code(), 1009u);
  }
  {
    WebSocketClient client(server);
    client.send(frame(kBinary, "x"));
    EXPECT_EQ(client.close_code(), 1003u);
  }
  {
    WebSocketClient client(server);
    client.send(frame(kText, "\xff"));
    EXPECT_EQ(client.close_code(), 1007u);
  }
  server.until([&] { return server.listener->counts().n_connections == 0; }, "all are closed");
}

TEST(WebSocket, TellsWhatItDropsForASlowReader) {
  ServerSetup setup;
  setup.listener.send_buffer_bytes = 16 * 1024;
  TestServer server(setup);
  WebSocketClient client(server, "", 16 * 1024);
  server.until([&] { return server.session != nullptr; }, "it is open");
  const auto [n_sent, n_dropped] = server.on_io([&] {
    int n = 0;
    while (server.session->offer(std::to_string(n) + std::string(100'000, 'x'))) ++n;
    return std::pair(n, server.session->n_dropped());
  });
  EXPECT_GE(n_sent, 9);
  EXPECT_LE(n_sent, 12);
  EXPECT_EQ(n_dropped, 1u);
  for (int i = 0; i < n_sent; ++i) {
    EXPECT_EQ(client.read_frame().payload.substr(0, 2 + i / 10), std::to_string(i) + "x");
  }
  EXPECT_TRUE(server.on_io([&] { return server.session->offer("room again"); }));
  EXPECT_EQ(client.read_frame().payload, "room again");
}

TEST(WebSocket, GivesUpAReaderThatDoesNotRead) {
  ServerSetup setup;
  setup.listener.send_buffer_bytes = 16 * 1024;
  TestServer server(setup);
  WebSocketClient client(server, "", 16 * 1024);
  server.until([&] { return server.session != nullptr; }, "it is open");
  server.on_io([&] {
    while (server.session->offer(std::string(100'000, 'x'))) {
    }
    return 0;
  });
  server.until(
      [&] {
        server.clock.advance(milliseconds(limits::kHttpWriteStallMs));
        return !server.session;
      },
      "it is given up");
}

TEST(WebSocket, PingsAndGivesUpWhoDoesNotAnswer) {
  ServerSetup setup;
  setup.listener.limits.websocket_ping = milliseconds(20);
  TestServer server(setup);
  WebSocketClient client(server);
  EXPECT_EQ(client.read_frame().opcode, kPing);
  client.send(frame(kPong, ""));
  EXPECT_EQ(client.read_frame().opcode, kPing);
  server.until([&] { return !server.session; }, "nothing was answered, so it is given up");
}

TEST(WebSocket, IsToldThatTheServerStops) {
  TestServer server;
  WebSocketClient client(server);
  server.until([&] { return server.session != nullptr; }, "it is open");
  auto stopped = server.begin_stop(milliseconds(20'000));
  EXPECT_EQ(client.close_code(), 1001u);
  client.send(frame(kClose, "\x03\xe9"));
  client.close();
  EXPECT_EQ(stopped.get(), 0u);
}

}  // namespace
}  // namespace fermata::api
