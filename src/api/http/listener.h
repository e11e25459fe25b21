#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/address.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/http/answered.h"
#include "api/http/guard.h"
#include "api/http/http_message.h"
#include "api/http/router.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/result.h"

namespace fermata::api {

struct HttpLimits {
  std::size_t header_bytes_max = limits::kHttpHeaderBytesMax;
  std::size_t headers_max = limits::kHttpHeadersMax;
  std::size_t body_bytes_max = limits::kHttpBodyBytesMax;
  std::size_t bodies_bytes_max = limits::kHttpBodiesBytesMax;
  std::size_t connections_max = limits::kHttpConnectionsMax;
  std::size_t requests_per_connection_max = limits::kHttpRequestsPerConnectionMax;
  Duration idle = milliseconds(limits::kHttpIdleMs);
  Duration header_read = milliseconds(limits::kHttpHeaderReadMs);
  Duration body_read = milliseconds(limits::kHttpBodyReadMs);
  Duration write_stall = milliseconds(limits::kHttpWriteStallMs);
  Duration linger = milliseconds(limits::kHttpLingerMs);
  Duration sweep = milliseconds(limits::kHttpSweepMs);
  Duration websocket_ping = milliseconds(limits::kKeepAliveMs);
};

// What a request that never reaches a handler is answered with. The listener puts in the status where Code says too
// little (408, 431, 503), and the headers that go with 401 and 405.
using RenderError = std::function<HttpResponse(const Error&)>;

// An address as it is written, or "localhost". An error's `field` is "host".
Result<boost::asio::ip::address> parse_address(const std::string& host);

struct ListenerOptions {
  boost::asio::ip::address address = boost::asio::ip::address_v4::loopback();
  std::uint16_t port = 8080;  // 0: any free one
  HttpLimits limits;
  int send_buffer_bytes = 0;      // SO_SNDBUF of connections; 0: the system's
  TellAnswered answered = {};     // may be empty; on the io thread, once for each request
  std::string noted_header = {};  // of answers: AnsweredRequest::noted; lower case
};

struct ListenerCounts {
  std::size_t n_connections = 0;  // open now
  std::uint64_t n_accepted = 0;
  std::uint64_t n_requests = 0;  // that reached a handler
  std::uint64_t n_refused = 0;   // that did not
  std::uint64_t n_failed = 0;    // whose handler threw, or ended without an answer
};

// HTTP/1.1 and 1.0 on one address. Everything runs on the executor's one thread. Router, guard and clock outlive it and
// every connection; connections that are open when it dies run on until stop() was awaited or the io_context is gone.
class Listener {
 public:
  // Binds. Without keys in the guard any address but loopback is refused. An error's `field` is what should be another:
  // "host", "port" or "keys"; empty if that is not known.
  static Result<std::unique_ptr<Listener>> bind(boost::asio::any_io_executor executor, const Clock& clock,
                                                const Router& router, const Guard& guard, RenderError render,
                                                ListenerOptions options);
  virtual ~Listener() = default;

  virtual void start() = 0;
  virtual std::uint16_t port() const = 0;
  virtual std::string url() const = 0;  // "http://127.0.0.1:8080"
  virtual ListenerCounts counts() const = 0;

  // Ends what is answered, or followed by a WebSocket, under these keys: the client counts as gone.
  virtual void end_all_of(const std::vector<ApiKeys::Hash>& keys) = 0;

  // Accepts no more, closes idle connections, lets busy ones finish for `at_most`, then cuts them: their exchanges are
  // gone. Returns, when all handlers have ended or at the latest after twice `at_most`, how many were cut.
  virtual boost::asio::awaitable<std::size_t> stop(Duration at_most) = 0;
};

}  // namespace fermata::api
