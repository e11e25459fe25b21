#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"

namespace fermata::api {

// Who ended an answer before it was whole, or a WebSocket.
enum class CutBy : std::uint8_t {
  kNobody,
  kClient,  // it went, or read nothing
  kKey,     // its key is not known any more
  kStop,    // the server stopped, and waited no longer
  kError,   // the handler failed in the middle
};

// How what an answer tells of ended; the status of a stream was said long before.
enum class Ending : std::uint8_t {
  kWell,     // as its client, or whoever may interrupt it, wanted
  kRefused,  // something was not granted it: time, or a server that goes on
  kFailed,   // by a fault of ours
  kLeft,     // its client went before the answer began; what is still sent to it is a last word
};

// One request that is over, for a log. Nothing of a body, nothing of a query: both may hold secrets. Texts are
// printable ASCII without blanks and bounded, whatever the client sent.
struct AnsweredRequest {
  std::string id;             // x-request-id: the client's, if it is a sane one, else ours
  std::string method;         // empty: the request line was not understood
  std::string path;           // as it came, without the query
  int status = 0;             // of one that was told nothing: 499 the client went, 401 or 503 it was cut
  std::uint64_t n_bytes = 0;  // of the answer's body; of a WebSocket 0
  Duration took;              // from the request's first byte, to the last of the answer; of a WebSocket, to its end
  std::string key;            // name of the key; empty: none was needed, or none was known
  std::string tenant;
  std::string noted;             // value of ListenerOptions::noted_header in the answer
  std::string end;               // what the handler says of how it ended (Exchange::note_end)
  std::optional<Ending> ending;  // the same; none: the status says it
  bool is_whole = false;
  CutBy cut_by = CutBy::kNobody;  // if it is not
};

using TellAnswered = std::function<void(const AnsweredRequest& request)>;

}  // namespace fermata::api
