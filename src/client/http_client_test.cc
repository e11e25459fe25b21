#include "client/http_client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace fermata::client {
namespace {

// Answers one connection after the other as it was told to, on a free port of this machine, in a thread of its own.
class ScriptedServer {
 public:
  using Script = std::function<void(int connection)>;  // to be called for each connection, in order
  explicit ScriptedServer(std::vector<Script> scripts) : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const plain = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener_, plain, length), 0);
    EXPECT_EQ(listen(listener_, 8), 0);
    EXPECT_EQ(getsockname(listener_, plain, &length), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, scripts = std::move(scripts)] {
      std::vector<int> connections;
      for (const Script& script : scripts) {
        const int connection = accept(listener_, nullptr, nullptr);
        if (connection < 0) break;  // the test has ended
        connections.push_back(connection);
        script(connection);
      }
      for (const int connection : connections) close(connection);
    });
  }
  ~ScriptedServer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

 private:
  int listener_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

std::string read_head(int connection) {
  std::string head;
  char byte = 0;
  while (!head.ends_with("\r\n\r\n") && recv(connection, &byte, 1, 0) == 1) head += byte;
  return head;
}

void say(int connection, const std::string& text) { (void)!send(connection, text.data(), text.size(), MSG_NOSIGNAL); }

std::string whole(const std::string& body, const std::string& type = "application/json") {
  return "HTTP/1.1 200 OK\r\nContent-Type: " + type + "\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

const std::string kStreamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";

// True when the other side has closed; what it sends before is thrown away.
bool is_closed(int connection) {
  char bytes[256];
  ssize_t n = 0;
  while ((n = recv(connection, bytes, sizeof bytes, 0)) > 0) continue;
  return n <= 0;
}

TEST(HttpClient, asks_as_whom_it_was_told_and_gives_the_answer_whole) {
  std::string head;
  const ScriptedServer server({[&](int connection) {
    head = read_head(connection);
    say(connection, "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone");
  }});
  HttpClient client({server.url() + "/", "a key"});
  const auto answer = client.ask({"GET", "/v1/generations/..?limit=1", {}});
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_EQ(answer->status, 404);
  EXPECT_EQ(answer->body, "none");
  EXPECT_TRUE(head.starts_with("GET /v1/generations/..?limit=1 HTTP/1.1\r\n")) << head;
  EXPECT_NE(head.find("\r\nAuthorization: Bearer a key\r\n"), std::string::npos) << head;
}

TEST(HttpClient, a_proxy_of_the_environment_is_not_asked_for_this_machine) {
  unsetenv("no_proxy");
  setenv("http_proxy", "http://127.0.0.1:1", 1);
  const ScriptedServer server({[&](int connection) {
    read_head(connection);
    say(connection, whole("{}"));
  }});
  const auto answer = HttpClient({server.url(), {}}).ask({"GET", "/", {}});
  unsetenv("http_proxy");
  EXPECT_TRUE(answer.has_value());
}

TEST(HttpClient, pieces_of_a_stream_come_as_they_are_sent_and_others_meanwhile) {
  std::vector<std::string> pieces;
  bool ended = false;
  const ScriptedServer server({[&](int connection) {
                                 read_head(connection);
                                 say(connection, kStreamHead + "data: 1\n\n");
                               },
                               [&](int connection) {
                                 read_head(connection);
                                 say(connection, whole("{}"));
                               }});
  HttpClient client({server.url(), {}});
  client.begin(
      {"POST", "/stream", "{}", {}}, [&](std::string_view piece) { pieces.emplace_back(piece); },
      [&](Result<HttpAnswer>) { ended = true; });
  while (pieces.empty() && !ended) client.wait({}, seconds(1));
  ASSERT_FALSE(pieces.empty());
  EXPECT_EQ(pieces.front(), "data: 1\n\n");
  EXPECT_TRUE(client.ask({"GET", "/other", {}}).has_value());
  while (!ended) client.wait({}, seconds(1));
}

TEST(HttpClient, a_stream_dropped_by_its_own_piece_is_closed_and_has_no_end) {
  bool server_saw_it = false;
  int n_pieces = 0;
  {
    const ScriptedServer server({[&](int connection) {
      read_head(connection);
      say(connection, kStreamHead + "data: 1\n\n");
      server_saw_it = is_closed(connection);
    }});
    HttpClient client({server.url(), {}});
    HttpClient::Id id = 0;
    id = client.begin(
        {"POST", "/stream", "{}", {}},
        [&](std::string_view) {
          ++n_pieces;
          client.drop(id);
          client.drop(id);
        },
        [](Result<HttpAnswer>) { FAIL() << "it was dropped"; });
    while (client.is_under_way(id)) client.wait({}, seconds(1));
    client.wait({}, {});
  }
  EXPECT_TRUE(server_saw_it);
  EXPECT_EQ(n_pieces, 1);
}

TEST(HttpClient, what_is_dropped_with_it_is_closed) {
  bool server_saw_it = false;
  {
    const ScriptedServer server({[&](int connection) {
      read_head(connection);
      say(connection, kStreamHead + "data: 1\n\n");
      server_saw_it = is_closed(connection);
    }});
    bool began = false;
    HttpClient client({server.url(), {}});
    client.begin(
        {"POST", "/stream", "{}", {}}, [&](std::string_view) { began = true; }, [](Result<HttpAnswer>) {});
    while (!began) client.wait({}, seconds(1));
  }
  EXPECT_TRUE(server_saw_it);
}

TEST(HttpClient, says_what_is_wrong_with_what_answers) {
  const std::pair<std::string, std::string> cases[] = {
      {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", "broke off"},
      {"SSH-2.0-OpenSSH_9.2\r\n", "is no fermata server"},
  };
  for (const auto& [answered, why] : cases) {
    const ScriptedServer server({[answered = answered](int connection) {
      read_head(connection);
      say(connection, answered);
      shutdown(connection, SHUT_WR);
    }});
    const auto answer = HttpClient({server.url(), {}}).ask({"GET", "/", {}});
    ASSERT_FALSE(answer.has_value()) << why;
    EXPECT_NE(answer.error().message.find(why), std::string::npos) << answer.error().message;
  }
}

TEST(HttpClient, nobody_there_is_no_server_and_another_word_is_no_url) {
  std::string nobody;
  {
    const ScriptedServer server({});
    nobody = server.url();
  }
  const auto none = HttpClient({nobody, {}}).ask({"GET", "/", {}});
  ASSERT_FALSE(none.has_value());
  EXPECT_NE(none.error().message.find("fermata serve"), std::string::npos) << none.error().message;
  const auto wrong = HttpClient({"ftp://127.0.0.1", {}}).ask({"GET", "/", {}});
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(wrong.error().code, Code::kInvalidArgument) << wrong.error().message;
}

}  // namespace
}  // namespace fermata::client
