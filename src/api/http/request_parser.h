#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/http/http_request.h"
#include "base/limits.h"
#include "base/result.h"

namespace fermata::api {

// One HTTP/1.x request from bytes that come in any pieces. No I/O. The request line and headers are Boost.Beast's to
// read, what they mean together is decided here, strictly: one Host, one way to tell the length of the body, targets
// that begin with a slash, escapes and UTF-8 that are whole. What is doubtful is refused, since another server in front
// of us may read it otherwise.
class RequestParser {
 public:
  struct Limits {
    std::size_t header_bytes_max = limits::kHttpHeaderBytesMax;
    std::size_t headers_max = limits::kHttpHeadersMax;
    std::size_t body_bytes_max = limits::kHttpBodyBytesMax;
  };
  explicit RequestParser(const Limits& limits);
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  enum class State { kHeader, kBody, kDone, kFailed };
  State state() const { return state_; }

  // Takes from the front of `bytes` what belongs to this request and returns how much that was; the rest must be given
  // again, with more behind it. Returns with state kBody as soon as the header is whole, so that it can be judged
  // first.
  std::size_t put(std::string_view bytes);

  struct Failure {
    int status = 400;  // 400, 413, 431
    Error error;
  };
  const Failure& failure() const { return failure_; }

  // From kBody on. The body is whole at kDone.
  HttpRequest& request() { return request_; }
  const std::string& raw_path() const { return raw_path_; }
  bool http11() const { return http11_; }
  bool keep_alive() const { return keep_alive_; }
  bool expects_continue() const { return expects_continue_; }
  std::optional<std::uint64_t> body_length() const { return body_length_; }  // none: chunked
  bool started() const { return started_; }                                  // more than empty lines came
  bool has_head() const { return has_head_; }  // its headers are whole, whatever else is wrong with it

 private:
  class HeadParser;
  friend class HeadParser;
  struct Body;

  std::size_t put_header(std::string_view bytes);
  std::size_t put_body(std::string_view bytes);
  std::size_t find_header_end(std::string_view bytes);
  void finish_header();
  bool read_target(std::string_view target);
  bool read_query(std::string_view query);
  bool read_framing();
  void fail(int status, Code code, std::string message, std::string detail = {});

  const Limits limits_;
  State state_ = State::kHeader;
  Failure failure_;
  std::unique_ptr<Body> chunks_;  // null: told by content-length
  bool started_ = false;
  bool has_head_ = false;
  std::size_t header_bytes_ = 0;  // of empty lines before it
  std::size_t scanned_ = 0;       // of the header that is not whole yet
  std::uint64_t body_left_ = 0;
  HttpRequest request_;
  std::string target_;
  std::string raw_path_;
  bool http11_ = true;
  bool keep_alive_ = true;
  bool expects_continue_ = false;
  std::optional<std::uint64_t> body_length_ = 0;
};

}  // namespace fermata::api
