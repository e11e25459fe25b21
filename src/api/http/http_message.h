#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <string_view>

#include "api/http/answered.h"
#include "api/http/http_request.h"

namespace fermata::api {

class WebSocketSession;

// One request being answered: either respond() once, or begin_stream() and then write() pieces until end_stream(), or
// accept_websocket(). io thread. Every call may be awaited by one coroutine at a time.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual boost::asio::any_io_executor executor() = 0;

  virtual boost::asio::awaitable<void> respond(HttpResponse response) = 0;

  // Status and headers of a chunked body go out at once. False if the client is gone, or asked for the headers only.
  virtual boost::asio::awaitable<bool> begin_stream(HttpResponse head) = 0;
  // Each piece is flushed. Returns when the kernel has taken it: a slow reader makes this wait. False: client gone.
  virtual boost::asio::awaitable<bool> write(std::string_view piece) = 0;
  virtual boost::asio::awaitable<void> end_stream() = 0;

  // For the log: how what is answered ended, which the status of a stream cannot tell. Printable, without blanks.
  virtual void note_end(std::string_view end, Ending how) = 0;

  // The client closed its side or the connection broke; seen at once, also while nothing is written. A client that
  // closes its sending side alone counts as gone too. Said also of a reader that took nothing for kHttpWriteStallMs,
  // and of one that the stopping server no longer waits for.
  virtual bool is_gone() const = 0;
  // Called once when that happens (at once if it already has); replaced by the next call, dropped with the exchange.
  virtual void on_gone(std::function<void()> call) = 0;

  // Answers a request of which wants_websocket() is true (websocket.h) by becoming a WebSocket. Null: the handshake
  // failed, and was answered. From then on only the session knows whether the client is there.
  virtual boost::asio::awaitable<std::shared_ptr<WebSocketSession>> accept_websocket();
};

// What answers a route. A handler that ends without an answer, or throws, is answered for with an internal error; in
// the middle of a stream the connection is cut. The exchange dies when the handler returns.
using Handler = std::function<boost::asio::awaitable<void>(HttpRequest request, Exchange& exchange)>;

}  // namespace fermata::api
