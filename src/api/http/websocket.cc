#include "api/http/websocket.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <chrono>
#include <deque>
#include <utility>

#include "api/http/http_text.h"
#include "api/http/signal.h"
#include "api/http/websocket_connection.h"
#include "base/limits.h"

namespace fermata::api {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;

constexpr std::size_t kKeyChars = 24;  // 16 bytes in base64

bool wants_websocket(const HttpRequest& request) {
  return request.method == "GET" && lists_token(request.header("upgrade"), "websocket") &&
         lists_token(request.header("connection"), "upgrade") && request.header("sec-websocket-version") == "13" &&
         request.header("sec-websocket-key").size() == kKeyChars;
}

asio::awaitable<std::shared_ptr<WebSocketSession>> Exchange::accept_websocket() { co_return nullptr; }

namespace {

// A handshake, opening or closing, that takes longer is given up.
constexpr std::chrono::seconds kHandshake{5};

class Session final : public WebSocketConnection, public std::enable_shared_from_this<Session> {
 public:
  Session(asio::ip::tcp::socket socket, const Clock& clock, const HttpLimits& limits)
      : stream_(std::move(socket)),
        clock_(clock),
        write_stall_(limits.write_stall),
        room_(stream_.get_executor()),
        work_(stream_.get_executor()),
        mail_(stream_.get_executor()),
        over_(stream_.get_executor()) {
    // Beast pings after half of the idle time-out without a sign of life, and gives up after all of it.
    stream_.set_option(beast::websocket::stream_base::timeout{
        kHandshake, std::chrono::nanoseconds(2 * limits.websocket_ping.ns), true});
    stream_.read_message_max(limits::kWebSocketMessageBytesMax);
    // Beast answers a client's close, and then waits for the end of its connection; its user need not.
    stream_.control_callback([this](beast::websocket::frame_type kind, beast::string_view) {
      if (kind != beast::websocket::frame_type::close || is_leaving_) return;
      is_leaving_ = true;
      leaving_since_ = clock_.now();
      broke();
    });
    stream_.text(true);
    stream_.auto_fragment(false);  // a message is a frame: what is read more easily
  }

  asio::awaitable<bool> open(std::string key) {
    beast::http::request<beast::http::empty_body> handshake{beast::http::verb::get, "/", 11};
    handshake.set(beast::http::field::host, "localhost");
    handshake.set(beast::http::field::upgrade, "websocket");
    handshake.set(beast::http::field::connection, "upgrade");
    handshake.set(beast::http::field::sec_websocket_version, "13");
    handshake.set(beast::http::field::sec_websocket_key, key);
    error_code ec;
    co_await stream_.async_accept(handshake, asio::redirect_error(asio::use_awaitable, ec));
    if (ec) co_return false;
    asio::co_spawn(stream_.get_executor(), run_reader(shared_from_this()), asio::detached);
    asio::co_spawn(stream_.get_executor(), run_writer(shared_from_this()), asio::detached);
    n_loops_ = 2;
    co_return true;
  }

  asio::awaitable<bool> send(std::string text) override {
    while (!closing() && !has_room(text)) co_await room_.wait(Signal::kForever);
    if (closing()) co_return false;
    push(std::move(text));
    co_return true;
  }

  bool offer(std::string text) override {
    if (closing()) return false;
    if (!has_room(text)) {
      ++n_dropped_;
      return false;
    }
    push(std::move(text));
    return true;
  }

  std::uint64_t n_dropped() const override { return n_dropped_; }

  asio::awaitable<std::optional<std::string>> receive() override {
    while (inbox_.empty() && !closing()) co_await mail_.wait(Signal::kForever);
    if (inbox_.empty()) co_return std::nullopt;
    std::optional<std::string> text = std::move(inbox_.front());
    inbox_.pop_front();
    co_return text;
  }

  bool is_closed() const override { return closing(); }

  void on_closed(std::function<void()> call) override {
    if (!closing()) {
      on_closed_ = std::move(call);
    } else if (call) {
      call();
    }
  }

  void close(std::uint16_t code, std::string_view reason) override {
    if (closing()) return;
    reason_ = beast::websocket::close_reason(static_cast<beast::websocket::close_code>(code),
                                             beast::string_view(reason.data(), reason.size()));
    must_close_ = true;
    tell();
  }

  void abort() override {
    error_code ignored;
    beast::get_lowest_layer(stream_).close(ignored);
    broke();
  }

  void look_at_time(Instant now) override {
    if (is_writing_ && now - writing_since_ >= write_stall_) abort();
    if (is_leaving_ && now - leaving_since_ >= Duration{std::chrono::nanoseconds(kHandshake).count()}) abort();
  }

  asio::awaitable<void> ended() override {
    while (n_loops_ > 0) co_await over_.wait(Signal::kForever);
  }

 private:
  bool closing() const { return must_close_ || is_broken_; }

  bool has_room(const std::string& text) const {
    return queue_.empty() || (queue_.size() < limits::kWebSocketQueueMax &&
                              queue_bytes_ + text.size() <= limits::kWebSocketQueueBytesMax);
  }

  void push(std::string text) {
    queue_bytes_ += text.size();
    queue_.push_back(std::move(text));
    work_.notify();
  }

  void broke() {
    if (is_broken_) return;
    is_broken_ = true;
    tell();
  }

  void tell() {
    room_.notify();
    work_.notify();
    mail_.notify();
    if (const auto call = std::exchange(on_closed_, nullptr)) call();
  }

  void loop_ended() {
    --n_loops_;
    over_.notify();
  }

  static asio::awaitable<void> run_reader(std::shared_ptr<Session> self) {
    co_await self->read();
    self->broke();
    self->loop_ended();
  }

  asio::awaitable<void> read() {
    for (;;) {
      beast::flat_buffer buffer;
      error_code ec;
      co_await stream_.async_read(buffer, asio::redirect_error(asio::use_awaitable, ec));
      if (ec) co_return;
      if (closing()) continue;  // what comes after our close is read over, up to the client's
      if (!stream_.got_text()) {
        close(1003, "text messages only");
      } else if (inbox_.size() == limits::kWebSocketInboxMax) {
        close(1008, "too many messages at once");
      } else {
        inbox_.push_back(beast::buffers_to_string(buffer.data()));
        mail_.notify();
      }
    }
  }

  static asio::awaitable<void> run_writer(std::shared_ptr<Session> self) {
    co_await self->write();
    self->broke();
    self->loop_ended();
  }

  asio::awaitable<void> write() {
    for (;;) {
      while (queue_.empty() && !closing()) co_await work_.wait(Signal::kForever);
      if (is_broken_) co_return;
      is_writing_ = true;
      writing_since_ = clock_.now();
      error_code ec;
      if (queue_.empty()) {
        co_await stream_.async_close(reason_, asio::redirect_error(asio::use_awaitable, ec));
        is_writing_ = false;
        co_return;
      }
      const std::string text = std::move(queue_.front());
      queue_.pop_front();
      co_await stream_.async_write(asio::buffer(text), asio::redirect_error(asio::use_awaitable, ec));
      is_writing_ = false;
      queue_bytes_ -= text.size();
      if (ec) co_return;
      room_.notify();
    }
  }

  beast::websocket::stream<asio::ip::tcp::socket> stream_;
  const Clock& clock_;
  const Duration write_stall_;
  Signal room_;  // the queue became shorter
  Signal work_;  // there is something to write
  Signal mail_;  // the client wrote
  Signal over_;  // a loop ended
  std::deque<std::string> queue_;
  std::size_t queue_bytes_ = 0;  // with the message that is being written
  std::deque<std::string> inbox_;
  std::uint64_t n_dropped_ = 0;
  std::function<void()> on_closed_;
  beast::websocket::close_reason reason_;
  Instant writing_since_;
  Instant leaving_since_;
  bool is_writing_ = false;
  bool is_leaving_ = false;  // its close frame came
  bool must_close_ = false;  // the queue goes out, then the close frame
  bool is_broken_ = false;   // nothing goes out any more
  int n_loops_ = 0;
};

}  // namespace

asio::awaitable<std::shared_ptr<WebSocketConnection>> open_websocket(asio::ip::tcp::socket socket, std::string key,
                                                                     const Clock& clock, const HttpLimits& limits) {
  auto session = std::make_shared<Session>(std::move(socket), clock, limits);
  if (!co_await session->open(std::move(key))) co_return nullptr;
  co_return session;
}

}  // namespace fermata::api
