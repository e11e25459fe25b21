#pragma once

#include <string>

#include "base/result.h"
#include "chat/dialogue.h"
#include "client/remote_server.h"

namespace fermata::chat {

struct TalkOptions {
  std::string system;        // message; empty: none
  std::string session;       // of the server
  json::object fields;       // of every request: max_tokens, temperature, …
  std::string greeting;      // who answers
  std::string history_path;  // empty: it is not kept
  bool has_colours = true;
};

enum class TalkEnd {
  kLeft,
  kInterrupted,  // by Ctrl-C
  kStopped,      // `stop` could be read
  kNobodyThere,  // the terminal is gone
};

// A talk with a server in the terminal of standard input and output, until the user leaves. `stop`: a descriptor that
// can be read when it is to end.
TalkEnd talk_in_terminal(client::RemoteServer& server, const TalkOptions& options, int stop);

// The same without a terminal: each line of standard input is a question, its answer goes to standard output, and
// nothing else does. Ends at the first thing that does not work.
Result<TalkEnd> talk_by_lines(client::RemoteServer& server, const TalkOptions& options, int stop);

// The request for an answer to `question`, or for the rest of one.
json::object request_for(const TalkOptions& options, const Dialogue& dialogue, const std::string& question,
                         const std::string& answer_begun = {});

}  // namespace fermata::chat
