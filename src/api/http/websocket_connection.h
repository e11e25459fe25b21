#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <string>

#include "api/http/listener.h"
#include "api/http/websocket.h"
#include "base/clock.h"

namespace fermata::api {

// The session as its connection sees it. Internal.
class WebSocketConnection : public WebSocketSession {
 public:
  virtual void look_at_time(Instant now) = 0;
  virtual boost::asio::awaitable<void> ended() = 0;  // until both directions are closed
};

// Answers the handshake whose key is given; null if that failed. The socket is the session's from here on.
boost::asio::awaitable<std::shared_ptr<WebSocketConnection>> open_websocket(boost::asio::ip::tcp::socket socket,
                                                                            std::string key, const Clock& clock,
                                                                            const HttpLimits& limits);

}  // namespace fermata::api
