#pragma once

#include <string>
#include <string_view>

#include "api/http/answered.h"
#include "api/http/http_request.h"
#include "base/clock.h"

namespace fermata::api {

// What becomes known of one request while it is answered, until the log is told. A connection has one for each request.
class AnswerRecord {
 public:
  explicit AnswerRecord(Instant begun) : begun_(begun) {}

  void begin(const HttpRequest& request, std::string_view raw_path);  // its head was read
  void admit(const Principal& principal);
  void head(const HttpResponse& response, std::string_view noted_header);  // of the answer
  void wrote(std::size_t n_bytes) { told_.n_bytes += n_bytes; }            // of its body
  void whole() { told_.is_whole = true; }
  void become_websocket();  // which is whole unless it is cut
  void end(std::string_view name, Ending how);
  void cut(CutBy by);  // the first counts; nothing cuts an answer that is whole

  const std::string& id();  // the client's, or ours from now on
  // Nothing if the connection ended before there was a request.
  void tell(const TellAnswered& answered, Instant now);

 private:
  Instant begun_;
  bool is_websocket_ = false;
  AnsweredRequest told_;
};

}  // namespace fermata::api
