#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <memory>
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
  std::vector<TokenId> prompt;
  std::int32_t priority = 0;
  Instant created;

  GenerationId core_id = kNoGeneration;  // none: waits for its session, or ended before it began
  std::shared_ptr<EventRing> ring;
  Recording recording;
  Signal changed;                     // the recording grew
  std::vector<std::size_t*> readers;  // completion streams: entries of the log that each has sent
  Instant interrupt_asked;            // of the oldest pause or cancel that is not reached; 0: none

  const std::string& id() const { return head.generation_id; }
  // It runs, or will without anybody doing anything.
  bool goes_on() const { return core_id != kNoGeneration && !recording.ended() && !recording.pause(); }
  bool shares_session(const Dossier& other) const {
    return !head.session.empty() && head.session == other.head.session && tenant == other.tenant;
  }
};

}  // namespace fermata::api
