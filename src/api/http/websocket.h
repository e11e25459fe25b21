#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/http/http_message.h"

namespace fermata::api {

// The request asks to become a WebSocket, and well so (version 13, a key).
bool wants_websocket(const HttpRequest& request);

// A WebSocket of one client, made by Exchange::accept_websocket(); text messages. io thread. Pings every
// HttpLimits::websocket_ping by itself; a client that answers neither of two is closed, as is one that sends more than
// limits.h allows, or reads nothing for kHttpWriteStallMs. The connection ends with its handler: what is queued then
// goes out.
class WebSocketSession {
 public:
  virtual ~WebSocketSession() = default;

  // Puts a message into the queue; waits while the queue is full. False: closed.
  virtual boost::asio::awaitable<bool> send(std::string text) = 0;
  // The same without waiting. False: this message was dropped, because the queue is full (see n_dropped) or the client
  // is gone. What is in the queue already is never dropped, so the caller can say "n lost here" when there is room
  // again.
  virtual bool offer(std::string text) = 0;
  virtual std::uint64_t n_dropped() const = 0;  // by offer, since it was opened

  // The next message of the client; nothing: closed.
  virtual boost::asio::awaitable<std::optional<std::string>> receive() = 0;

  virtual bool is_closed() const = 0;
  // Called once when it closes (at once if it has); replaced by the next call.
  virtual void on_closed(std::function<void()> call) = 0;
  // What is queued goes out, then the close frame. 1000 normal, 1001 going away, 1008 policy, 1011 internal.
  virtual void close(std::uint16_t code, std::string_view reason) = 0;
  virtual void abort() = 0;  // closed now, nothing goes out
};

}  // namespace fermata::api
