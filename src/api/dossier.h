#pragma once

#include <algorithm>
#include <boost/json/object.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/http/signal.h"
#include "api/openai/answer.h"
#include "api/openai/call.h"
#include "api/recording.h"
#include "runtime/core.h"

namespace fermata::api {

// A generation as clients know it: its names, what it was asked for, what it said so far. Owner: the io thread; shared
// by the desk and by whoever is reading it.
struct Dossier {
  explicit Dossier(boost::asio::any_io_executor executor) : changed(std::move(executor)) {}

  AnswerHead head;  // its public ids among them
  std::string client_id;
  std::string tenant;
  std::string owner;  // name of the key
  FermataOptions options;
  std::size_t n_metadata_bytes = 0;  // of options.metadata, as text
  std::vector<TokenId> prompt;
  std::optional<ValidRequest> request;  // what its generation does, its prompt excepted; none: it never began
  std::string parent;                   // gen_…, that it is a branch of; empty: none
  Position forked_at = 0;               // tokens of its parent that it begins with
  std::int32_t priority = 0;
  Instant created;

  GenerationId core_id = kNoGeneration;  // none: waits for its session, or ended before it began
  std::shared_ptr<EventRing> ring;
  Recording recording;
  Signal changed;                     // the recording grew
  std::vector<std::size_t*> readers;  // completion streams: entries of the log that each has sent
  std::size_t n_text_sent = 0;        // bytes of text that a stream sent which cannot take them back
  int n_resuming = 0;                 // resumes that the engine thread has not answered
  Instant held_since;                 // while it waits for its session: whoever paused that holds it back; 0: nobody
  std::string let_go_with;            // digest of the resume that let it go after it was held; empty: none
  Instant interrupt_asked;            // of the oldest pause or cancel that is not reached; 0: none

  const std::string& id() const { return head.generation_id; }
  bool is_held() const { return held_since.ns != 0; }
  // About what it takes in memory. A value of the metadata may take a dozen times its text.
  std::size_t bytes() const {
    return recording.bytes() + prompt.size() * sizeof(TokenId) + n_metadata_bytes * 12 + sizeof(Dossier);
  }
  // It runs, or will without anybody doing anything more.
  bool goes_on() const {
    return core_id != kNoGeneration && !recording.ended() && (!recording.pause() || n_resuming > 0);
  }
  // Entries of the log that even its quickest reader has not sent; 0 if it has none.
  std::size_t n_unread() const {
    std::size_t n = readers.empty() ? 0 : recording.log().size();
    for (const std::size_t* cursor : readers)
      n = std::min(n, recording.log().size() - std::min(*cursor, recording.log().size()));
    return n;
  }
  bool waits_for_its_reader() const {
    return recording.pause() != nullptr && recording.wait_reason() == WaitReason::kSlowReader;
  }
};

}  // namespace fermata::api
