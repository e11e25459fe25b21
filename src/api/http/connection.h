#pragma once

#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "api/http/answer_record.h"
#include "api/http/answered.h"
#include "api/http/guard.h"
#include "api/http/http_message.h"
#include "api/http/listener.h"
#include "api/http/request_parser.h"
#include "api/http/router.h"
#include "api/http/signal.h"
#include "base/clock.h"

namespace fermata::api {

class Connection;
class WebSocketConnection;

// What the listener and its connections share. io thread.
struct HttpServer {
  HttpServer(boost::asio::any_io_executor runs_on, const Clock& the_clock, const Router& the_router,
             const Guard& the_guard, RenderError renders, const HttpLimits& the_limits);

  std::string_view date();  // of now, made once a second

  boost::asio::any_io_executor executor;
  const Clock& clock;
  const Router& router;
  const Guard& guard;
  RenderError render;
  HttpLimits limits;
  TellAnswered answered;
  std::string noted_header;
  std::unordered_set<Connection*> connections;
  ListenerCounts counts;
  bool draining = false;
  std::size_t n_cut = 0;                // that a stop did not wait for
  std::size_t bodies_bytes = 0;         // of bodies being read, or being answered
  Signal changed;                       // a connection ended
  std::array<char, 16 * 1024> scratch;  // what is read goes through here, so that no idle connection needs a buffer

 private:
  std::string date_;
  std::int64_t date_of_ = -1;
};

// One client. Reads requests, has them judged and answered one after the other, in order. All waiting is for the socket
// to become readable or writable; time-outs are deadlines that the listener's sweep looks at. While a handler works the
// socket is watched: an end of file means that the client is gone, bytes are kept for the next request.
class Connection final : public Exchange, public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<HttpServer> server, boost::asio::ip::tcp::socket socket, bool refused);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  boost::asio::awaitable<void> run();  // until the connection ends
  void look_at_time(Instant now);
  void drain();                                            // ends now if idle, else after what it does
  void cut();                                              // ends now
  void end_if_of(const std::vector<ApiKeys::Hash>& keys);  // ends now if it works for one of these

  boost::asio::any_io_executor executor() override { return server_->executor; }
  boost::asio::awaitable<void> respond(HttpResponse response) override;
  boost::asio::awaitable<bool> begin_stream(HttpResponse head) override;
  boost::asio::awaitable<bool> write(std::string_view piece) override;
  boost::asio::awaitable<void> end_stream() override;
  void note_end(std::string_view end, Ending how) override { record_->end(end, how); }
  bool is_gone() const override { return gone_; }
  void on_gone(std::function<void()> call) override;
  boost::asio::awaitable<std::shared_ptr<WebSocketSession>> accept_websocket() override;

 private:
  enum class Received { kBytes, kNothing, kEnd };
  enum class Answer { kNone, kStreaming, kDone };

  // Each returns whether the connection may go on with the next request.
  boost::asio::awaitable<bool> serve_one();
  boost::asio::awaitable<bool> answer_one(RequestParser& parser);
  boost::asio::awaitable<bool> refuse(RequestParser& parser, Admission admission);
  boost::asio::awaitable<bool> handle(RequestParser& parser, const Endpoint& route);

  boost::asio::awaitable<bool> read_header(RequestParser& parser);
  boost::asio::awaitable<bool> read_body(RequestParser& parser, bool keep);
  boost::asio::awaitable<bool> finish_reading(RequestParser& parser, bool more);
  boost::asio::awaitable<bool> fail(int status, Error error);
  boost::asio::awaitable<bool> receive_more();
  boost::asio::awaitable<bool> send(boost::asio::const_buffer first, boost::asio::const_buffer second = {},
                                    boost::asio::const_buffer third = {});
  boost::asio::awaitable<void> take_turn();
  boost::asio::awaitable<void> linger();

  RequestParser::State parse(RequestParser& parser);
  Received receive();  // what is there now, behind in_
  std::string_view pending() const { return std::string_view(in_).substr(in_begin_); }
  void take(std::size_t n_bytes);
  void begin_answer(RequestParser& parser);
  void add_headers(HttpResponse& response);
  void abandon(CutBy by);
  bool reserve_body(std::size_t n_bytes);
  void release_body();
  void watch();
  void unwatch();
  void lose();
  void set_deadline(Duration after);
  void clear_deadline();

  const std::shared_ptr<HttpServer> server_;
  boost::asio::ip::tcp::socket socket_;
  const bool refused_;  // over connections_max: told so and closed
  bool idle_ = true;
  bool ended_ = false;   // the client sent its end of file, or the socket failed
  bool broken_ = false;  // nothing more can be sent
  bool expired_ = false;
  std::size_t n_in_a_row_ = 0;  // reads and writes without waiting
  std::size_t n_requests_ = 0;
  Instant deadline_;

  std::string in_;  // received, not parsed: from in_begin_ on
  std::size_t in_begin_ = 0;
  std::size_t body_reserved_ = 0;
  std::uint64_t watch_number_ = 0;

  // Of the request that is answered now.
  Answer answer_ = Answer::kDone;
  bool gone_ = false;
  bool head_only_ = false;
  bool http11_ = true;
  bool keep_alive_ = true;
  bool chunked_ = false;
  std::function<void()> on_gone_;
  std::vector<std::pair<std::string, std::string>> extra_headers_;
  std::unique_ptr<AnswerRecord> record_;  // null while the connection is idle
  std::optional<ApiKeys::Hash> key_;      // a WebSocket's until it ends
  std::array<char, 20> chunk_size_{};
  std::string websocket_key_;
  std::shared_ptr<WebSocketConnection> websocket_;
};

}  // namespace fermata::api
