#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace fermata::client {

// Where a server is, and as whom it is asked.
struct Endpoint {
  std::string url;      // "http://127.0.0.1:8080", without a path; https too
  std::string api_key;  // empty: none is sent
};

struct HttpCall {
  std::string method;               // "GET", "POST"
  std::string path;                 // with its query, escaped
  std::string body;                 // JSON
  Duration at_most = seconds(100);  // without a byte of the answer; 0: however long, as for a stream that may be paused
};

struct HttpAnswer {
  int status = 0;
  std::string body;  // but for what was given away in pieces
};

// Calls of one server, several at a time, on libcurl. It does nothing by itself: what comes is taken, and callbacks are
// called, inside wait() and ask(). One thread. What a callback gets is the server's word, checked for its size alone.
class HttpClient {
 public:
  explicit HttpClient(Endpoint endpoint);
  ~HttpClient();  // drops what is under way
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  const Endpoint& endpoint() const { return endpoint_; }

  using Id = std::uint64_t;
  // Pieces of an event stream, if that is what is answered; any other body is in the answer.
  using OnPiece = std::function<void(std::string_view)>;
  // Once, last, unless it was dropped. kIo: there is no answer, or it broke off.
  using OnEnd = std::function<void(Result<HttpAnswer>)>;
  Id begin(HttpCall call, OnPiece on_piece, OnEnd on_end);
  // The connection is closed: the server sees its client go. May be called from a callback.
  void drop(Id id);
  bool is_under_way(Id id) const { return transfers_.contains(id); }

  // Returns when something came for a call, when one of the descriptors can be read, or after `at_most`.
  void wait(std::span<const int> descriptors, Duration at_most);

  Result<HttpAnswer> ask(HttpCall call);

 private:
  struct Transfer;
  struct MultiCloser {
    void operator()(void* multi) const;
  };
  bool go_on();
  void finish_those_done();
  Result<HttpAnswer> outcome(const Transfer& transfer, int curl_code) const;

  Endpoint endpoint_;
  bool is_local_ = false;                     // no proxy is asked, whatever the environment says
  std::unique_ptr<void, MultiCloser> multi_;  // CURLM
  std::map<Id, std::unique_ptr<Transfer>> transfers_;
  std::vector<std::unique_ptr<Transfer>> dropped_;  // of the callback that is being called
  Id next_id_ = 1;
  std::uint64_t n_given_ = 0;  // to callbacks
};

// One segment of a path, or a value of a query: "a b/c" is "a%20b%2Fc".
std::string percent_encoded(std::string_view text);

}  // namespace fermata::client
