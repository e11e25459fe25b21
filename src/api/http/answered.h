#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.h"

namespace fermata::api {

// One request that is over, for a log. Nothing of a body, nothing of a query: both may hold secrets. Texts are
// printable ASCII without blanks and bounded, whatever the client sent.
struct AnsweredRequest {
  std::string id;             // x-request-id: the client's, if it is a sane one, else ours
  std::string method;         // empty: the request line was not understood
  std::string path;           // as it came, without the query
  int status = 0;             // 499: the client went before it was told anything
  std::uint64_t n_bytes = 0;  // of the answer's body; of a WebSocket 0
  Duration took;              // from the request's first byte, to the last of the answer; of a WebSocket, to its end
  std::string key;            // name of the key; empty: none was needed, or none was known
  std::string tenant;
  std::string noted;      // value of ListenerOptions::noted_header in the answer
  bool is_whole = false;  // false: the client went meanwhile, or the answer was cut
};

using TellAnswered = std::function<void(const AnsweredRequest& request)>;

}  // namespace fermata::api
