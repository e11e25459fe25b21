#include "api/http/connection.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <charconv>
#include <ctime>
#include <exception>
#include <limits>
#include <utility>

#include "api/http/http_text.h"
#include "api/http/response_head.h"
#include "api/http/websocket_connection.h"
#include "base/check.h"
#include "base/limits.h"

namespace fermata::api {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr Instant kNever{std::numeric_limits<std::int64_t>::max()};
constexpr std::size_t kKeptCapacity = 1024;  // of the buffer of an idle connection
constexpr std::string_view kKeyIsGone = "this API key is not known here any more";

Error busy(std::string message) { return Error{Code::kBusy, std::move(message), {}, true}; }
Error bad_request(std::string message) { return Error{Code::kInvalidArgument, std::move(message), {}}; }

bool would_block(const error_code& ec) { return ec == asio::error::would_block || ec == asio::error::try_again; }

}  // namespace

HttpServer::HttpServer(asio::any_io_executor runs_on, const Clock& the_clock, const Router& the_router,
                       const Guard& the_guard, RenderError renders, const HttpLimits& the_limits)
    : executor(std::move(runs_on)),
      clock(the_clock),
      router(the_router),
      guard(the_guard),
      render(std::move(renders)),
      limits(the_limits),
      changed(executor) {}

std::string_view HttpServer::date() {
  const auto now = static_cast<std::int64_t>(std::time(nullptr));
  if (now != date_of_) {
    date_ = http_date(now);
    date_of_ = now;
  }
  return date_;
}

Connection::Connection(std::shared_ptr<HttpServer> server, asio::ip::tcp::socket socket, bool refused)
    : server_(std::move(server)), socket_(std::move(socket)), refused_(refused), deadline_(kNever) {
  server_->connections.insert(this);
  ++server_->counts.n_connections;
}

Connection::~Connection() {
  release_body();
  server_->connections.erase(this);
  --server_->counts.n_connections;
  server_->changed.notify();
}

asio::awaitable<void> Connection::run() {
  bool goes_on = true;
  while (goes_on) {
    if (pending().empty()) {
      if (server_->draining) break;
      idle_ = true;
      set_deadline(server_->limits.idle);
      error_code ec;
      co_await socket_.async_wait(socket_.wait_read, asio::redirect_error(asio::use_awaitable, ec));
      clear_deadline();
      idle_ = false;
      if (ec) break;
    }
    goes_on = co_await serve_one();
  }
  unwatch();
  if (websocket_) {
    websocket_->close(1000, "");
    co_await websocket_->ended();
  } else {
    co_await linger();
  }
  error_code ignored;
  socket_.close(ignored);
}

asio::awaitable<bool> Connection::serve_one() {
  const HttpLimits& limits = server_->limits;
  RequestParser parser({limits.header_bytes_max, limits.headers_max, limits.body_bytes_max});
  record_ = std::make_unique<AnswerRecord>(server_->clock.now());
  extra_headers_.clear();
  head_only_ = false;
  const bool goes_on = co_await answer_one(parser);
  record_->tell(server_->answered, server_->clock.now());
  record_.reset();
  if (!websocket_) key_.reset();
  co_return goes_on;
}

asio::awaitable<bool> Connection::answer_one(RequestParser& parser) {
  if (!co_await read_header(parser)) co_return false;
  begin_answer(parser);
  if (refused_) {
    Error error = busy("Too many connections: at most " + std::to_string(server_->limits.connections_max) + ".");
    co_return co_await fail(503, std::move(error));
  }
  Admission admission = server_->guard.admit(parser.request(), parser.raw_path(), server_->router);
  extra_headers_ = std::move(admission.headers);
  record_->admit(admission.principal);
  key_ = admission.key;
  if (!admission.route) co_return co_await refuse(parser, std::move(admission));
  if (!co_await read_body(parser, true)) co_return false;
  if (admission.route->options.needs_json_body && parser.request().body.empty()) {
    admission.refusal = bad_request("This call needs a JSON body.");
    co_return co_await refuse(parser, std::move(admission));
  }
  parser.request().parts = std::move(admission.parts);
  parser.request().principal = std::move(admission.principal);
  co_return co_await handle(parser, *admission.route);
}

void Connection::begin_answer(RequestParser& parser) {
  ++n_requests_;
  answer_ = Answer::kNone;
  head_only_ = false;
  http11_ = parser.http11();
  keep_alive_ = parser.keep_alive() && n_requests_ < server_->limits.requests_per_connection_max && !refused_;
  chunked_ = false;
  websocket_key_.clear();
  record_->begin(parser.request(), parser.raw_path());
}

void Connection::add_headers(HttpResponse& response) {
  record_->head(response, server_->noted_header);
  response.headers.insert(response.headers.end(), extra_headers_.begin(), extra_headers_.end());
  response.headers.emplace_back("x-request-id", record_->id());
}

// A small body is read over, so that the line stays; a client that waits for 100-continue, or that would send much, is
// told at once, and the connection ends.
asio::awaitable<bool> Connection::refuse(RequestParser& parser, Admission admission) {
  ++server_->counts.n_refused;
  head_only_ = parser.request().method == "HEAD";
  const auto length = parser.body_length();
  if (parser.state() != RequestParser::State::kDone) {
    const bool is_small = length && *length <= limits::kHttpDrainBytesMax && !parser.expects_continue();
    if (!is_small) keep_alive_ = false;
    if (is_small && !co_await read_body(parser, false)) co_return false;
  }
  HttpResponse answer = admission.refusal ? server_->render(*admission.refusal) : *std::move(admission.preflight);
  co_await respond(std::move(answer));
  co_return keep_alive_ && !broken_;
}

// What no client of good faith sends, or what we have no room for. Ends the connection.
asio::awaitable<bool> Connection::fail(int status, Error error) {
  ++server_->counts.n_refused;
  HttpResponse answer = server_->render(error);
  answer.status = status;
  answer_ = Answer::kNone;
  keep_alive_ = false;
  co_await respond(std::move(answer));
  co_return false;
}

asio::awaitable<bool> Connection::read_header(RequestParser& parser) {
  set_deadline(server_->limits.header_read);
  bool more = true;
  while (more && parse(parser) == RequestParser::State::kHeader) more = co_await receive_more();
  co_return co_await finish_reading(parser, more);
}

asio::awaitable<bool> Connection::read_body(RequestParser& parser, bool keep) {
  if (parser.state() == RequestParser::State::kDone) co_return true;
  bool fits = !keep || reserve_body(parser.body_length().value_or(0));
  if (fits && keep && parser.expects_continue() && pending().empty()) {
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    co_await send(asio::buffer(kContinue));
  }
  set_deadline(server_->limits.body_read);
  bool more = true;
  while (fits && more && parse(parser) == RequestParser::State::kBody) {
    fits = !keep || reserve_body(parser.request().body.size());
    if (fits) more = co_await receive_more();
  }
  if (!fits) {
    clear_deadline();
    Error error = busy("Too much is being read now: at most " + std::to_string(server_->limits.bodies_bytes_max) +
                       " bytes of bodies together.");
    co_return co_await fail(503, std::move(error));
  }
  co_return co_await finish_reading(parser, more);
}

RequestParser::State Connection::parse(RequestParser& parser) {
  take(parser.put(pending()));
  return parser.state();
}

// What is there now is whole, or wrong, or will not come.
asio::awaitable<bool> Connection::finish_reading(RequestParser& parser, bool more) {
  const bool is_late = expired_ && !ended_ && parser.started();
  clear_deadline();
  if (parser.state() == RequestParser::State::kFailed) {
    if (parser.has_head()) record_->begin(parser.request(), parser.raw_path());
    const RequestParser::Failure& failure = parser.failure();
    co_return co_await fail(failure.status, failure.error);
  }
  if (is_late) {
    Error error = bad_request("The request took too long to come.");
    co_return co_await fail(408, std::move(error));
  }
  co_return more;
}

bool Connection::reserve_body(std::size_t n_bytes) {
  if (n_bytes <= body_reserved_) return true;
  const std::size_t more = n_bytes - body_reserved_;
  if (more > server_->limits.bodies_bytes_max - std::min(server_->bodies_bytes, server_->limits.bodies_bytes_max)) {
    return false;
  }
  body_reserved_ = n_bytes;
  server_->bodies_bytes += more;
  return true;
}

void Connection::release_body() {
  server_->bodies_bytes -= body_reserved_;
  body_reserved_ = 0;
}

asio::awaitable<bool> Connection::handle(RequestParser& parser, const Endpoint& route) {
  ++server_->counts.n_requests;
  head_only_ = parser.request().method == "HEAD";
  if (wants_websocket(parser.request())) websocket_key_ = parser.request().header("sec-websocket-key");
  gone_ = false;
  watch();
  bool threw = false;
  try {
    co_await route.handler(std::move(parser.request()), *this);
  } catch (const std::exception&) {
    threw = true;
  }
  release_body();
  on_gone_ = nullptr;
  if (websocket_) co_return false;
  if (answer_ != Answer::kDone || threw) ++server_->counts.n_failed;
  // A stream that is cut here lacks its last chunk, so the client knows.
  if (answer_ == Answer::kStreaming) {
    if (!gone_ && !broken_) record_->cut(CutBy::kError);
    broken_ = true;
  }
  if (answer_ == Answer::kNone) {
    HttpResponse answer = server_->render(Error{Code::kEngine, "The server failed to answer this request.", {}});
    co_await respond(std::move(answer));
  }
  unwatch();
  if (gone_) broken_ = true;
  co_return keep_alive_ && !gone_ && !broken_ && !server_->draining;
}

// --- the exchange

asio::awaitable<void> Connection::respond(HttpResponse response) {
  FERMATA_CHECK(answer_ == Answer::kNone);
  answer_ = Answer::kDone;
  release_body();
  if (server_->draining) keep_alive_ = false;
  add_headers(response);
  const std::string head = response_head(response, {Framing::kLength, keep_alive_, http11_, server_->date()});
  const bool body = has_body(response.status) && !head_only_;
  if (!co_await send(asio::buffer(head), body ? asio::buffer(response.body) : asio::const_buffer())) co_return;
  if (body) record_->wrote(response.body.size());
  record_->whole();
}

asio::awaitable<bool> Connection::begin_stream(HttpResponse response) {
  FERMATA_CHECK(answer_ == Answer::kNone);
  const bool body = has_body(response.status) && !head_only_;
  answer_ = body ? Answer::kStreaming : Answer::kDone;
  chunked_ = http11_;
  release_body();
  if (!chunked_ || server_->draining) keep_alive_ = false;
  add_headers(response);
  const std::string head = response_head(
      response, {chunked_ ? Framing::kChunked : Framing::kUntilClose, keep_alive_, http11_, server_->date()});
  const bool is_sent = co_await send(asio::buffer(head));
  if (is_sent && !body) record_->whole();
  const bool takes_more = is_sent && body && !gone_;
  co_return takes_more;
}

asio::awaitable<bool> Connection::write(std::string_view piece) {
  FERMATA_CHECK(answer_ != Answer::kNone);
  if (gone_ || broken_ || answer_ != Answer::kStreaming) co_return false;
  if (piece.empty()) co_return true;  // an empty chunk would end the body
  record_->wrote(piece.size());
  if (!chunked_) co_return co_await send(asio::buffer(piece));
  char* const begin = chunk_size_.data();
  char* end = std::to_chars(begin, begin + chunk_size_.size() - 2, piece.size(), 16).ptr;
  *end++ = '\r';
  *end++ = '\n';
  static constexpr std::string_view kLineEnd = "\r\n";
  co_return co_await send(asio::buffer(begin, static_cast<std::size_t>(end - begin)), asio::buffer(piece),
                          asio::buffer(kLineEnd));
}

asio::awaitable<void> Connection::end_stream() {
  FERMATA_CHECK(answer_ != Answer::kNone);
  if (answer_ == Answer::kDone) co_return;
  static constexpr std::string_view kLastChunk = "0\r\n\r\n";
  if (chunked_ && !gone_) co_await send(asio::buffer(kLastChunk));
  if (!gone_ && !broken_) record_->whole();
  answer_ = Answer::kDone;
}

void Connection::on_gone(std::function<void()> call) {
  if (!gone_) {
    on_gone_ = std::move(call);
  } else if (call) {
    call();
  }
}

asio::awaitable<std::shared_ptr<WebSocketSession>> Connection::accept_websocket() {
  FERMATA_CHECK(answer_ == Answer::kNone);
  if (websocket_key_.empty() || !pending().empty()) {
    HttpResponse answer = server_->render(bad_request("This is no handshake of a WebSocket."));
    co_await respond(std::move(answer));
    co_return nullptr;
  }
  unwatch();
  answer_ = Answer::kDone;
  keep_alive_ = false;
  websocket_ = co_await open_websocket(std::move(socket_), websocket_key_, server_->clock, server_->limits);
  if (!websocket_) {
    broken_ = gone_ = true;
    co_return nullptr;
  }
  if (broken_) {  // its key was taken out during the handshake, or the server cuts all
    websocket_->close(1008, kKeyIsGone);
    co_return nullptr;
  }
  record_->become_websocket();
  if (server_->draining) drain();
  co_return websocket_;
}

// --- the socket

Connection::Received Connection::receive() {
  error_code ec;
  const std::size_t n = socket_.read_some(asio::buffer(server_->scratch), ec);
  if (would_block(ec)) return Received::kNothing;
  if (ec) {
    ended_ = true;
    return Received::kEnd;
  }
  if (in_begin_ > 0) {
    in_.erase(0, in_begin_);
    in_begin_ = 0;
  }
  in_.append(server_->scratch.data(), n);
  return Received::kBytes;
}

void Connection::take(std::size_t n_bytes) {
  in_begin_ += n_bytes;
  if (in_begin_ < in_.size()) return;
  in_begin_ = 0;
  in_.clear();
  if (in_.capacity() > kKeptCapacity) std::string().swap(in_);
}

// False: nothing more will come, or not in time (expired_).
asio::awaitable<bool> Connection::receive_more() {
  if (++n_in_a_row_ >= limits::kHttpWritesInARowMax) co_await take_turn();
  for (;;) {
    if (expired_ || broken_) co_return false;
    switch (receive()) {
      case Received::kBytes: co_return true;
      case Received::kEnd: co_return false;
      case Received::kNothing: break;
    }
    n_in_a_row_ = 0;
    error_code ec;
    co_await socket_.async_wait(socket_.wait_read, asio::redirect_error(asio::use_awaitable, ec));
    if (ec) co_return false;
  }
}

asio::awaitable<bool> Connection::send(asio::const_buffer first, asio::const_buffer second, asio::const_buffer third) {
  std::array<asio::const_buffer, 3> pieces = {first, second, third};
  std::size_t left = asio::buffer_size(pieces);
  while (left > 0) {
    if (broken_) co_return false;
    error_code ec;
    std::size_t n = socket_.write_some(pieces, ec);
    if (would_block(ec)) {
      n_in_a_row_ = 0;
      set_deadline(server_->limits.write_stall);
      co_await socket_.async_wait(socket_.wait_write, asio::redirect_error(asio::use_awaitable, ec));
      const bool stalled = expired_;
      clear_deadline();
      if (stalled || broken_) {
        broken_ = true;
        lose();
        co_return false;
      }
      // An answer that is whole is still tried on a client that closed its sending side; a stream ends.
      if (gone_ && answer_ == Answer::kStreaming) co_return false;
      continue;
    }
    if (ec) {
      broken_ = true;
      lose();
      co_return false;
    }
    left -= n;
    for (auto& piece : pieces) {
      const std::size_t taken = std::min(n, piece.size());
      piece += taken;
      n -= taken;
    }
  }
  if (++n_in_a_row_ >= limits::kHttpWritesInARowMax) co_await take_turn();
  co_return true;
}

// One client that sends and reads as fast as we do must not keep the thread.
asio::awaitable<void> Connection::take_turn() {
  n_in_a_row_ = 0;
  co_await asio::post(server_->executor, asio::use_awaitable);
}

void Connection::watch() {
  // Bytes beyond what is read ahead stay with the kernel; then only a reset is seen, or a failed write.
  const bool full = pending().size() >= limits::kHttpReadAheadBytesMax;
  socket_.async_wait(full ? socket_.wait_error : socket_.wait_read,
                     [self = shared_from_this(), number = watch_number_](error_code ec) {
                       if (number != self->watch_number_ || self->gone_) return;
                       if (ec || self->receive() == Received::kEnd) return self->lose();
                       self->watch();
                     });
}

void Connection::unwatch() {
  ++watch_number_;
  error_code ignored;
  socket_.cancel(ignored);
}

void Connection::lose() {
  if (gone_) return;
  gone_ = true;
  error_code ignored;
  socket_.cancel(ignored);  // wakes a write that waits
  if (const auto call = std::exchange(on_gone_, nullptr)) call();
}

// Lets the client read our last bytes: closing with unread bytes of its own would reset the connection under them.
asio::awaitable<void> Connection::linger() {
  if (broken_ || ended_ || expired_) co_return;
  error_code ec;
  socket_.shutdown(socket_.shutdown_send, ec);
  if (ec || (server_->draining && receive() == Received::kNothing)) co_return;
  idle_ = true;
  set_deadline(server_->limits.linger);
  std::size_t n_over = 0;
  do {
    n_over += pending().size();
    take(pending().size());
  } while (n_over <= limits::kHttpLingerBytesMax && co_await receive_more());
}

void Connection::set_deadline(Duration after) {
  expired_ = false;
  deadline_ = server_->clock.now() + after;
}

void Connection::clear_deadline() {
  expired_ = false;
  deadline_ = kNever;
}

void Connection::look_at_time(Instant now) {
  if (websocket_) return websocket_->look_at_time(now);
  if (now < deadline_) return;
  deadline_ = kNever;
  expired_ = true;
  error_code ignored;
  socket_.cancel(ignored);
}

void Connection::drain() {
  if (websocket_) return websocket_->close(1001, "the server is stopping");
  if (!idle_) return;
  error_code ignored;
  socket_.cancel(ignored);
}

void Connection::cut() {
  ++server_->n_cut;
  broken_ = true;
  if (!websocket_) return abandon(CutBy::kStop);
  if (record_) record_->cut(CutBy::kStop);
  websocket_->abort();
}

void Connection::end_if_of(const std::vector<ApiKeys::Hash>& keys) {
  if (!key_ || std::find(keys.begin(), keys.end(), *key_) == keys.end()) return;
  if (!websocket_) return abandon(CutBy::kKey);
  if (record_) record_->cut(CutBy::kKey);
  websocket_->close(1008, kKeyIsGone);
}

void Connection::abandon(CutBy by) {
  if (record_ && !gone_) record_->cut(by);
  broken_ = true;
  lose();
  error_code ignored;
  socket_.cancel(ignored);
}

}  // namespace fermata::api
