#include "api/http/request_parser.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <charconv>
#include <functional>

#include "api/http/chunk_decoder.h"
#include "api/http/http_text.h"

namespace fermata::api {
namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;
using boost::beast::string_view;

std::string_view view(string_view text) { return {text.data(), text.size()}; }

// A second one of these would be read differently by different servers, or makes no sense.
bool comes_once(std::string_view name) {
  for (const std::string_view once : {"host", "content-length", "transfer-encoding", "content-type", "authorization",
                                      "origin", "sec-fetch-site", "expect", "idempotency-key", "last-event-id"}) {
    if (name == once) return true;
  }
  return false;
}

bool has_control_character(std::string_view value) {
  return std::any_of(value.begin(), value.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t') || byte == 0x7f;
  });
}

}  // namespace

struct RequestParser::Body {
  ChunkDecoder decoder;
};

// Beast reads the header only: it is told to skip the body, whatever the headers say of one.
class RequestParser::HeadParser final : public http::basic_parser<true> {
 public:
  explicit HeadParser(RequestParser& owner) : owner_(owner) {
    skip(true);
    header_limit(static_cast<std::uint32_t>(owner.limits_.header_bytes_max));
    body_limit(boost::none);
  }

  std::size_t read(std::string_view bytes, error_code& ec) {
    input_ = bytes;
    return put(boost::asio::const_buffer(bytes.data(), bytes.size()), ec);
  }

 private:
  void on_request_impl(http::verb, string_view method, string_view target, int version, error_code& ec) override {
    ec = {};
    owner_.request_.method = view(method);
    owner_.target_ = view(target);
    owner_.http11_ = version == 11;
  }

  void on_field_impl(http::field, string_view name, string_view value, error_code& ec) override {
    ec = {};
    auto& headers = owner_.request_.headers;
    if (++n_headers_ > owner_.limits_.headers_max) {
      owner_.fail(431, Code::kTooLarge,
                  "Too many headers: at most " + std::to_string(owner_.limits_.headers_max) + ".");
      ec = http::error::header_limit;
      return;
    }
    if (has_control_character(view(value)) || is_folded(view(name), view(value))) {
      ec = http::error::bad_value;
      return;
    }
    const auto [place, is_new] = headers.try_emplace(to_lower(view(name)), view(value));
    if (is_new) return;
    if (comes_once(place->first)) {
      owner_.fail(400, Code::kInvalidArgument, "The header " + place->first + " must come once.");
      ec = http::error::bad_field;
      return;
    }
    place->second.append(", ").append(view(value));
  }

  // A value that goes on in a next line. RFC 9112 5.2 lets a server refuse it, and others read it otherwise. Beast
  // copies such a value, or begins it behind the line's end.
  bool is_folded(std::string_view name, std::string_view value) const {
    const std::less_equal<const char*> before;
    if (!before(input_.data(), value.data()) || !before(value.data() + value.size(), input_.data() + input_.size())) {
      return true;
    }
    const std::string_view between(name.data() + name.size(), value.data() - name.data() - name.size());
    return between.find('\n') != std::string_view::npos;
  }

  void on_response_impl(int, string_view, int, error_code&) override {}
  void on_header_impl(error_code& ec) override { ec = {}; }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code& ec) override { ec = {}; }
  std::size_t on_body_impl(string_view, error_code& ec) override {
    ec = {};
    return 0;
  }
  void on_chunk_header_impl(std::uint64_t, string_view, error_code& ec) override { ec = {}; }
  std::size_t on_chunk_body_impl(std::uint64_t, string_view, error_code& ec) override {
    ec = {};
    return 0;
  }
  void on_finish_impl(error_code& ec) override { ec = {}; }

  RequestParser& owner_;
  std::string_view input_;  // what is being read
  std::size_t n_headers_ = 0;
};

RequestParser::RequestParser(const Limits& limits) : limits_(limits) {}
RequestParser::~RequestParser() = default;

std::size_t RequestParser::put(std::string_view bytes) {
  if (state_ == State::kHeader) return put_header(bytes);
  if (state_ == State::kBody) return put_body(bytes);
  return 0;
}

void RequestParser::fail(int status, Code code, std::string message, std::string detail) {
  if (state_ == State::kFailed) return;
  state_ = State::kFailed;
  failure_ = {status, Error{code, std::move(message), std::move(detail)}};
}

// The header is given to Beast only when it is whole, so that nothing depends on how its bytes came.
std::size_t RequestParser::put_header(std::string_view bytes) {
  std::size_t n_skipped = 0;
  if (!started_) {
    // RFC 9112 2.2: empty lines before a request are read over.
    while (bytes.substr(n_skipped, 2) == "\r\n") n_skipped += 2;
    header_bytes_ += n_skipped;
    bytes.remove_prefix(n_skipped);
    if (!bytes.empty() && bytes != "\r") {
      started_ = true;
      if (bytes.front() < 'A' || bytes.front() > 'z') fail(400, Code::kInvalidArgument, "This is no HTTP request.");
    }
  }
  const std::size_t n = started_ ? find_header_end(bytes) : 0;
  if (header_bytes_ + (n > 0 ? n : bytes.size()) > limits_.header_bytes_max) {
    fail(431, Code::kTooLarge,
         "The request line and headers are too large: at most " + std::to_string(limits_.header_bytes_max) + " bytes.");
  }
  if (state_ == State::kFailed || n == 0) return n_skipped;
  error_code ec;
  HeadParser head(*this);
  head.read(bytes.substr(0, n), ec);
  if (ec) {
    fail(400, Code::kInvalidArgument, "This is no HTTP/1.1 request: " + ec.message() + ".");
  } else if (!head.is_header_done()) {
    fail(400, Code::kInvalidArgument, "This is no HTTP/1.1 request: its lines are not what they seem.");
  } else {
    finish_header();
  }
  return n_skipped + n;
}

// Bytes up to and with the empty line; 0: not there yet, or a line does not end with CRLF.
std::size_t RequestParser::find_header_end(std::string_view bytes) {
  for (;;) {
    const auto end = bytes.find('\n', scanned_);
    if (end == std::string_view::npos) {
      scanned_ = bytes.size();
      return 0;
    }
    if (end == 0 || bytes[end - 1] != '\r') {
      fail(400, Code::kInvalidArgument, "Every line of a request must end with CRLF.");
      return 0;
    }
    scanned_ = end + 1;
    if (end >= 3 && bytes.substr(end - 3, 4) == "\r\n\r\n") return scanned_;
  }
}

void RequestParser::finish_header() {
  has_head_ = true;
  if (!read_target(target_) || !read_framing()) return;
  const std::string_view connection = request_.header("connection");
  keep_alive_ = http11_ ? !lists_token(connection, "close") : lists_token(connection, "keep-alive");
  if (http11_ && request_.header("host").empty()) {
    return fail(400, Code::kInvalidArgument, "An HTTP/1.1 request needs the header host.");
  }
  expects_continue_ = http11_ && equals_ignoring_case(request_.header("expect"), "100-continue");
  state_ = chunks_ || body_left_ > 0 ? State::kBody : State::kDone;
}

bool RequestParser::read_target(std::string_view target) {
  if (target == "*" && request_.method == "OPTIONS") {
    raw_path_ = request_.path = "*";
    return true;
  }
  if (!target.starts_with('/')) {
    fail(400, Code::kInvalidArgument, "The target of a request must begin with a slash.", ascii_excerpt(target));
    return false;
  }
  const auto mark = target.find('?');
  raw_path_ = target.substr(0, mark);
  auto path = percent_decoded(raw_path_);
  if (!path) {
    fail(400, Code::kInvalidArgument, "The path has a broken escape or is no UTF-8.", ascii_excerpt(raw_path_));
    return false;
  }
  request_.path = *std::move(path);
  return mark == std::string_view::npos || read_query(target.substr(mark + 1));
}

bool RequestParser::read_query(std::string_view query) {
  for (std::size_t n = 0; !query.empty();) {
    const auto end = query.find('&');
    const auto pair = query.substr(0, end);
    query.remove_prefix(end == std::string_view::npos ? query.size() : end + 1);
    if (pair.empty()) continue;
    if (++n > limits::kHttpQueryParametersMax) {
      fail(400, Code::kTooLarge,
           "Too many query parameters: at most " + std::to_string(limits::kHttpQueryParametersMax) + ".");
      return false;
    }
    const auto equals = pair.find('=');
    auto name = percent_decoded(pair.substr(0, equals), true);
    auto value = percent_decoded(equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1), true);
    if (!name || !value) {
      fail(400, Code::kInvalidArgument, "The query has a broken escape or is no UTF-8.", ascii_excerpt(pair));
      return false;
    }
    if (request_.query.contains(*name)) request_.repeated = *name;
    request_.query.insert_or_assign(*std::move(name), *std::move(value));
  }
  return true;
}

// RFC 9112 6: a body is told by "transfer-encoding: chunked" or by one number. Anything else ends the connection.
bool RequestParser::read_framing() {
  const bool has_length = request_.headers.contains("content-length");
  if (request_.headers.contains("transfer-encoding")) {
    if (has_length || !http11_ || !equals_ignoring_case(request_.header("transfer-encoding"), "chunked")) {
      fail(400, Code::kInvalidArgument,
           "Only transfer-encoding: chunked is read, in HTTP/1.1, without content-length.");
      return false;
    }
    body_length_.reset();
    chunks_.reset(new Body{ChunkDecoder(limits_.body_bytes_max, limits_.header_bytes_max)});
    return true;
  }
  if (!has_length) return true;
  const std::string_view digits = request_.header("content-length");
  const auto [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), body_left_);
  if (digits.empty() || digits.front() == '-' || wrong != std::errc() || end != digits.data() + digits.size()) {
    fail(400, Code::kInvalidArgument, "The content-length is no number.", ascii_excerpt(digits));
    return false;
  }
  body_length_ = body_left_;
  if (body_left_ > limits_.body_bytes_max) {
    fail(413, Code::kTooLarge,
         "The body is too large: " + std::string(digits) + " bytes, at most " + std::to_string(limits_.body_bytes_max) +
             ".");
    return false;
  }
  return true;
}

std::size_t RequestParser::put_body(std::string_view bytes) {
  if (!chunks_) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(body_left_, bytes.size()));
    request_.body.append(bytes.substr(0, n));
    body_left_ -= n;
    if (body_left_ == 0) state_ = State::kDone;
    return n;
  }
  std::size_t consumed = 0;
  switch (chunks_->decoder.put(bytes, consumed, request_.body)) {
    case ChunkDecoder::State::kMore: break;
    case ChunkDecoder::State::kDone: state_ = State::kDone; break;
    case ChunkDecoder::State::kMalformed: fail(400, Code::kInvalidArgument, "The chunked body is malformed."); break;
    case ChunkDecoder::State::kTooLarge:
      fail(413, Code::kTooLarge,
           "The chunked body is too large: at most " + std::to_string(limits_.body_bytes_max) + " bytes.");
      break;
  }
  return consumed;
}

}  // namespace fermata::api
