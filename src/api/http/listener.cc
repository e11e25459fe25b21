#include "api/http/listener.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <utility>
#include <vector>

#include "api/http/connection.h"
#include "base/check.h"

namespace fermata::api {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// Out of descriptors or memory: connections wait in the backlog meanwhile.
constexpr std::chrono::milliseconds kAcceptPause{50};

asio::awaitable<void> run_connection(std::shared_ptr<Connection> connection) { co_await connection->run(); }

class ListenerOfHttp final : public Listener {
 public:
  ListenerOfHttp(tcp::acceptor acceptor, std::shared_ptr<HttpServer> server, ListenerOptions options)
      : shared_(std::make_shared<Shared>(std::move(acceptor), std::move(server), options.send_buffer_bytes)),
        endpoint_(shared_->acceptor.local_endpoint()) {}

  ~ListenerOfHttp() override { shared_->close(); }

  void start() override {
    FERMATA_CHECK(!started_);
    started_ = true;
    asio::co_spawn(shared_->server->executor, accept(shared_), asio::detached);
    asio::co_spawn(shared_->server->executor, sweep(shared_), asio::detached);
  }

  std::uint16_t port() const override { return endpoint_.port(); }

  std::string url() const override {
    const std::string host = endpoint_.address().to_string();
    return "http://" + (endpoint_.address().is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(port());
  }

  ListenerCounts counts() const override { return shared_->server->counts; }

  void end_all_of(const std::vector<ApiKeys::Hash>& keys) override {
    if (keys.empty()) return;
    for (Connection* connection : copy_of(*shared_->server)) connection->end_if_of(keys);
  }

  asio::awaitable<std::size_t> stop(Duration at_most) override {
    const auto server = shared_->server;
    server->draining = true;
    error_code ignored;
    shared_->acceptor.close(ignored);
    for (Connection* connection : copy_of(*server)) connection->drain();
    co_await until_none(server, at_most);
    server->n_cut = 0;
    for (Connection* connection : copy_of(*server)) connection->cut();
    co_await until_none(server, at_most);
    shared_->close();
    co_return server->n_cut;
  }

 private:
  // Outlives the listener as long as its coroutines do.
  struct Shared {
    Shared(tcp::acceptor acceptor_of, std::shared_ptr<HttpServer> server_of, int send_buffer)
        : acceptor(std::move(acceptor_of)),
          server(std::move(server_of)),
          timer(server->executor),
          send_buffer_bytes(send_buffer) {}
    void close() {
      closed = true;
      error_code ignored;
      acceptor.close(ignored);
      timer.cancel();
    }
    tcp::acceptor acceptor;
    std::shared_ptr<HttpServer> server;
    asio::steady_timer timer;  // of the sweep
    const int send_buffer_bytes;
    bool closed = false;
  };

  // Ending one may end another.
  static std::vector<Connection*> copy_of(const HttpServer& server) {
    return {server.connections.begin(), server.connections.end()};
  }

  static asio::awaitable<void> until_none(std::shared_ptr<HttpServer> server, Duration at_most) {
    const Instant end = server->clock.now() + at_most;
    while (!server->connections.empty()) {
      const Duration left = end - server->clock.now();
      if (left.ns <= 0 || !co_await server->changed.wait(left)) co_return;
    }
  }

  static void serve(const Shared& shared, tcp::socket socket) {
    HttpServer& server = *shared.server;
    ++server.counts.n_accepted;
    const std::size_t n_max = server.limits.connections_max;
    if (server.counts.n_connections >= n_max + limits::kHttpRefusedMax) return;  // closes it
    error_code ec;
    socket.non_blocking(true, ec);
    if (!ec) socket.set_option(tcp::no_delay(true), ec);
    if (!ec && shared.send_buffer_bytes > 0) {
      socket.set_option(asio::socket_base::send_buffer_size(shared.send_buffer_bytes), ec);
    }
    if (ec) return;
    const bool refused = server.counts.n_connections >= n_max;
    auto connection = std::make_shared<Connection>(shared.server, std::move(socket), refused);
    asio::co_spawn(server.executor, run_connection(std::move(connection)), asio::detached);
  }

  static asio::awaitable<void> accept(std::shared_ptr<Shared> shared) {
    asio::steady_timer pause(shared->server->executor);
    while (shared->acceptor.is_open()) {
      error_code ec;
      tcp::socket socket = co_await shared->acceptor.async_accept(asio::redirect_error(asio::use_awaitable, ec));
      if (!ec) {
        serve(*shared, std::move(socket));
      } else if (shared->acceptor.is_open() && ec != asio::error::connection_aborted) {
        pause.expires_after(kAcceptPause);
        co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, ec));
      }
    }
  }

  static asio::awaitable<void> sweep(std::shared_ptr<Shared> shared) {
    while (!shared->closed) {
      shared->timer.expires_after(std::chrono::nanoseconds(shared->server->limits.sweep.ns));
      error_code ignored;
      co_await shared->timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
      const Instant now = shared->server->clock.now();
      for (Connection* connection : copy_of(*shared->server)) connection->look_at_time(now);
    }
  }

  const std::shared_ptr<Shared> shared_;
  const tcp::endpoint endpoint_;
  bool started_ = false;
};

Error cannot_listen(const ListenerOptions& options, const error_code& why) {
  const std::string port = std::to_string(options.port);
  const std::string host = options.address.to_string();
  if (why == asio::error::address_in_use)
    return Error{Code::kBusy, "port " + port + " of " + host + " is in use", {}, true, "port"};
  if (why == asio::error::access_denied)
    return Error{Code::kForbidden, "this user may not listen at port " + port, {}, false, "port"};
  if (why == boost::system::errc::address_not_available)
    return Error{Code::kInvalidArgument, "this machine has no address " + host, {}, false, "host"};
  return Error{Code::kIo, "cannot listen at port " + port + " of " + host, why.message()};
}

}  // namespace

Result<asio::ip::address> parse_address(const std::string& host) {
  error_code ec;
  const auto address = asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, ec);
  if (ec) return Error{Code::kInvalidArgument, "'" + host + "' is no address", {}, false, "host"};
  return address;
}

Result<std::unique_ptr<Listener>> Listener::bind(asio::any_io_executor executor, const Clock& clock,
                                                 const Router& router, const Guard& guard, RenderError render,
                                                 ListenerOptions options) {
  const asio::ip::address& address = options.address;
  if (!guard.has_keys() && !address.is_loopback())
    return Error{Code::kInvalidArgument,
                 "without API keys only loopback addresses are listened at, and " + address.to_string() + " is none",
                 {},
                 false,
                 "keys"};
  error_code ec;
  const tcp::endpoint endpoint(address, options.port);
  tcp::acceptor acceptor(executor);
  acceptor.open(endpoint.protocol(), ec);
  if (!ec) acceptor.set_option(asio::socket_base::reuse_address(true), ec);
  if (!ec && address.is_v6()) acceptor.set_option(asio::ip::v6_only(true), ec);
  if (!ec) acceptor.bind(endpoint, ec);
  if (!ec) acceptor.listen(asio::socket_base::max_listen_connections, ec);
  if (ec) return cannot_listen(options, ec);
  auto server = std::make_shared<HttpServer>(executor, clock, router, guard, std::move(render), options.limits);
  server->answered = std::move(options.answered);
  server->noted_header = options.noted_header;
  return std::unique_ptr<Listener>(
      std::make_unique<ListenerOfHttp>(std::move(acceptor), std::move(server), std::move(options)));
}

}  // namespace fermata::api
