#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "api/http/http_text.h"
#include "api/http/listener.h"
#include "api/http/signal.h"
#include "api/http/websocket.h"

// A server with a few routes on its own io thread, and a client that writes raw bytes. Every wait is bounded: one that
// does not end fails the test.
namespace fermata::api {

inline constexpr std::chrono::seconds kWaitMax{20};

struct ServerSetup {
  GuardOptions guard;
  ListenerOptions listener = {boost::asio::ip::address_v4::loopback(), 0, {}, 0};
};

class TestServer {
 public:
  explicit TestServer(ServerSetup setup = {}) : guard_(Guard::make(setup.guard).value()) {
    if (setup.listener.limits.sweep == HttpLimits{}.sweep) setup.listener.limits.sweep = milliseconds(1);
    add_routes();
    auto bound = Listener::bind(io.get_executor(), clock, router, guard_, &TestServer::render, setup.listener);
    listener = std::move(bound).value();
    listener->start();
    thread_ = std::thread([this] { io.run(); });
  }

  ~TestServer() {
    stop(milliseconds(5'000));
    work_.reset();
    thread_.join();
  }

  std::uint16_t port() const { return listener->port(); }

  // Runs on the io thread, returns what it returns.
  template <class F>
  auto on_io(F call) {
    std::packaged_task<decltype(call())()> task(std::move(call));
    auto result = task.get_future();
    boost::asio::post(io, [&task] { task(); });
    if (result.wait_for(kWaitMax) != std::future_status::ready) std::abort();
    return result.get();
  }

  // Waits until it holds; looks after every turn of the io loop.
  void until(const std::function<bool()>& holds, const char* what) {
    const auto end = std::chrono::steady_clock::now() + kWaitMax;
    while (!on_io(holds)) {
      if (std::chrono::steady_clock::now() > end) {
        ADD_FAILURE() << "did not happen: " << what;
        return;
      }
      std::this_thread::yield();
    }
  }

  std::size_t stop(Duration at_most) { return begin_stop(at_most).get(); }
  std::future<std::size_t> begin_stop(Duration at_most) {
    auto result = std::make_shared<std::promise<std::size_t>>();
    boost::asio::co_spawn(io, listener->stop(at_most),
                          [result](std::exception_ptr, std::size_t n_cut) { result->set_value(n_cut); });
    return result->get_future();
  }

  ListenerCounts counts() {
    return on_io([this] { return listener->counts(); });
  }
  void release() {
    on_io([this] {
      released = true;
      changed.notify();
      return 0;
    });
  }

  boost::asio::io_context io{1};
  ManualClock clock;
  Router router;
  std::unique_ptr<Listener> listener;
  // io thread
  Signal changed{io.get_executor()};
  bool released = false;
  int n_held = 0;          // handlers of /hold, /wait and /flood at work
  int n_gone = 0;          // of them, told that the client is gone
  int n_flood_pieces = 0;  // that /flood wrote
  std::shared_ptr<WebSocketSession> session;

 private:
  static HttpResponse render(const Error& error) {
    HttpResponse response;
    response.status = status_of(error.code);
    response.body = "{\"error\":{\"message\":\"" + error.message + "\"}}";
    return response;
  }

  static int status_of(Code code) {
    switch (code) {
      case Code::kUnauthenticated: return 401;
      case Code::kForbidden: return 403;
      case Code::kNotFound: return 404;
      case Code::kMethod: return 405;
      case Code::kMediaType: return 415;
      case Code::kWrongHost: return 421;
      case Code::kBusy: return 429;
      case Code::kEngine: return 500;
      default: return 400;
    }
  }

  static std::string told(const HttpRequest& request) {
    std::string text = request.method + " " + request.path;
    for (const auto& part : request.parts) text += " part=" + part;
    for (const auto& [name, value] : request.query) text.append(" ").append(name).append("=").append(value);
    return text + " by=" + request.principal.tenant + "/" + request.principal.name + " body=" + request.body;
  }

  static boost::asio::awaitable<void> echo(HttpRequest request, Exchange& exchange) {
    HttpResponse response;
    response.content_type = "text/plain";
    response.body = told(request);
    co_await exchange.respond(std::move(response));
  }

  boost::asio::awaitable<void> until_released_or_gone(Exchange& exchange) {
    ++n_held;
    exchange.on_gone([this] {
      ++n_gone;
      changed.notify();
    });
    while (!released && !exchange.is_gone()) co_await changed.wait(Signal::kForever);
    --n_held;
  }

  boost::asio::awaitable<void> hold(HttpRequest, Exchange& exchange) {
    HttpResponse head;
    head.content_type = "text/event-stream";
    if (!co_await exchange.begin_stream(std::move(head))) co_return;
    if (!co_await exchange.write("data: first\n\n")) co_return;
    co_await until_released_or_gone(exchange);
    co_await exchange.write("data: last\n\n");
    co_await exchange.end_stream();
  }

  boost::asio::awaitable<void> wait(HttpRequest request, Exchange& exchange) {
    co_await until_released_or_gone(exchange);
    co_await echo(std::move(request), exchange);
  }

  boost::asio::awaitable<void> flood(HttpRequest, Exchange& exchange) {
    ++n_held;
    const std::string piece(4096, 'x');
    exchange.on_gone([this] { ++n_gone; });
    HttpResponse head;
    bool there = co_await exchange.begin_stream(std::move(head));
    while (there) {
      there = co_await exchange.write(piece);
      n_flood_pieces += there;
    }
    --n_held;
  }

  static boost::asio::awaitable<void> cut_short(HttpRequest, Exchange& exchange) {
    HttpResponse head;
    co_await exchange.begin_stream(std::move(head));
    co_await exchange.write("half");
  }

  static boost::asio::awaitable<void> big(HttpRequest, Exchange& exchange) {
    HttpResponse response;
    response.body.assign(2 << 20, 'b');
    co_await exchange.respond(std::move(response));
  }

  static boost::asio::awaitable<void> header(HttpRequest request, Exchange& exchange) {
    HttpResponse response;
    response.headers.emplace_back("x-echo", request.parts.at(0));
    co_await exchange.respond(std::move(response));
  }

  boost::asio::awaitable<void> websocket(HttpRequest, Exchange& exchange) {
    auto opened = co_await exchange.accept_websocket();
    if (!opened) co_return;
    session = opened;
    while (auto text = co_await opened->receive()) {
      if (*text == "end") break;
      if (*text != "silent") co_await opened->send("echo:" + *text);
    }
    session.reset();
  }

  void add_routes() {
    const auto bound = [this](auto method) {
      return [this, method](HttpRequest request, Exchange& exchange) {
        return (this->*method)(std::move(request), exchange);
      };
    };
    const auto throws = [](HttpRequest, Exchange&) -> boost::asio::awaitable<void> {
      throw std::runtime_error("secret");
      co_return;
    };
    const auto nothing = [](HttpRequest, Exchange&) -> boost::asio::awaitable<void> { co_return; };
    router.add("GET", "/echo", Scope::kUse, &TestServer::echo);
    router.add("POST", "/echo/*", Scope::kUse, &TestServer::echo);
    router.add("PUT", "/echo/*", Scope::kUse, &TestServer::echo);
    router.add("DELETE", "/echo/*", Scope::kUse, &TestServer::echo);
    router.add("POST", "/needs", Scope::kUse, &TestServer::echo, {true, false});
    router.add("GET", "/admin", Scope::kAdmin, &TestServer::echo);
    router.add("GET", "/open", Scope::kUse, &TestServer::echo, {false, true});
    router.add("GET", "/hold", Scope::kUse, bound(&TestServer::hold));
    router.add("GET", "/wait", Scope::kUse, bound(&TestServer::wait));
    router.add("GET", "/flood", Scope::kUse, bound(&TestServer::flood));
    router.add("GET", "/cut", Scope::kUse, &TestServer::cut_short);
    router.add("GET", "/big", Scope::kUse, &TestServer::big);
    router.add("GET", "/header/*", Scope::kUse, &TestServer::header);
    router.add("GET", "/throw", Scope::kUse, throws);
    router.add("GET", "/nothing", Scope::kUse, nothing);
    router.add("GET", "/ws", Scope::kUse, bound(&TestServer::websocket));
  }

  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{io.get_executor()};
  Guard guard_;
  std::thread thread_;
};

struct Reply {
  int status = 0;
  std::map<std::string, std::string> headers;
  std::string body;
  std::string operator[](const std::string& name) const { return headers.contains(name) ? headers.at(name) : ""; }
};

class TestClient {
 public:
  explicit TestClient(std::uint16_t port, int receive_buffer_bytes = 0) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const timeval wait{kWaitMax.count(), 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    if (receive_buffer_bytes) {
      ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof receive_buffer_bytes);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  ~TestClient() { close(); }
  TestClient(TestClient&& other) noexcept : socket_(std::exchange(other.socket_, -1)), read_(std::move(other.read_)) {}
  TestClient& operator=(TestClient&&) = delete;

  // False: the server closed already.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  void send_one_by_one(std::string_view bytes) {
    const int on = 1;
    ::setsockopt(socket_, IPPROTO_TCP, 1 /* TCP_NODELAY */, &on, sizeof on);
    for (const char& c : bytes) ASSERT_TRUE(send({&c, 1}));
  }

  // Up to and with `mark`; all there was, if the server closed before.
  std::string read_until(std::string_view mark) {
    for (;;) {
      const auto at = read_.find(mark);
      if (at != std::string::npos) return take(at + mark.size());
      if (!read_more()) return take(read_.size());
    }
  }
  std::string read_bytes(std::size_t n) {
    while (read_.size() < n && read_more()) {
    }
    return take(std::min(n, read_.size()));
  }
  std::string read_to_end() {
    while (read_more()) {
    }
    return take(read_.size());
  }

  Reply read_head() {
    Reply reply;
    const std::string head = read_until("\r\n\r\n");
    if (head.size() < 12) return reply;
    reply.status = std::stoi(head.substr(9, 3));
    for (std::size_t line = head.find("\r\n") + 2; line + 2 < head.size();) {
      const auto end = head.find("\r\n", line);
      const auto colon = head.find(": ", line);
      reply.headers[head.substr(line, colon - line)] = head.substr(colon + 2, end - colon - 2);
      line = end + 2;
    }
    return reply;
  }

  Reply read_reply(bool with_body = true) {
    Reply reply = read_head();
    if (!with_body) return reply;
    if (reply.headers.contains("content-length")) {
      reply.body = read_bytes(std::stoul(reply["content-length"]));
    } else if (reply["transfer-encoding"] == "chunked") {
      for (;;) {
        const std::string size = read_until("\r\n");
        if (size.size() < 3) break;
        const std::size_t n = std::stoul(size, nullptr, 16);
        const std::string data = read_bytes(n + 2);
        if (n == 0) break;
        reply.body += data.substr(0, n);
      }
    }
    return reply;
  }

  Reply ask(std::string_view bytes) {
    send(bytes);
    return read_reply();
  }

  void shut_write() { ::shutdown(socket_, SHUT_WR); }
  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }
  void reset() {  // RST instead of FIN
    const linger now{1, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
  }
  bool at_end() { return read_.empty() && !read_more(); }

 private:
  bool read_more() {
    char buffer[16 * 1024];
    const auto n = ::recv(socket_, buffer, sizeof buffer, 0);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) ADD_FAILURE() << "the server neither answers nor closes";
    if (n <= 0) return false;
    read_.append(buffer, static_cast<std::size_t>(n));
    return true;
  }
  std::string take(std::size_t n) {
    std::string result = read_.substr(0, n);
    read_.erase(0, n);
    return result;
  }
  int socket_;
  std::string read_;
};

inline std::string get(std::string_view path, std::string_view more = "") {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n" + std::string(more) + "\r\n";
}
inline std::string post(std::string_view path, std::string_view body, std::string_view more = "") {
  return "POST " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
         std::string(more) + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

}  // namespace fermata::api
