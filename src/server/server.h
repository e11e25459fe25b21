#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/answered.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/result.h"
#include "engine/chat_template.h"
#include "engine/engine.h"
#include "runtime/engine_loop.h"
#include "server/log.h"

namespace fermata {

// What a loader brings.
struct LoadedModel {
  std::unique_ptr<Engine> engine;
  std::unique_ptr<ChatTemplate> chat;  // may be null
  std::string name;
  std::string path;
};

// What the operator is told while the model is loaded; called on the loader's thread, returns at once.
using TellLoading = std::function<void(LogLevel level, const std::string& line)>;
using Load = std::function<Result<LoadedModel>(const TellLoading& tell)>;

struct ServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;         // 0: any free one
  std::vector<std::string> hosts;    // other names by which we may be called
  std::vector<std::string> origins;  // web pages that may call us
  std::string api_key_file;          // empty: none; read anew when it changes
  std::vector<std::string> model_aliases;
  Duration drain = seconds(30);  // what runs may take to end when the server is told to stop
  Duration keep_alive = milliseconds(limits::kKeepAliveMs);  // a stream is never silent for longer
  Duration pause_wait = milliseconds(limits::kPauseWaitMs);  // what a whole answer waits through a pause
  Duration linger = milliseconds(limits::kHttpLingerMs);     // what clients may take to close when it stops
  Duration watch_every;                                      // how often ServerEvents::alive is told; 0: never
  LoopOptions loop;
  std::function<std::uint64_t()> n_log_lines_lost = [] { return 0; };  // for /metrics
};

struct Readiness {
  const EngineInfo& info;
  std::string model;
  std::string url;
  std::string_view chat_origin;  // as ChatTemplate has it; empty: there is none
  bool wants_key = false;
  std::vector<std::string> hosts;  // names by which others may call it; empty: only this machine can
};

// May be called from any thread until ServerEvents::over.
struct ServerControls {
  std::function<void()> stop;       // the first time it drains, the second time it hurries
  std::function<void()> read_keys;  // anew, from api_key_file; without one nothing happens
};

struct KeysRead {
  std::size_t n_keys = 0;
  std::size_t n_gone = 0;
};

// What it tells its operator, in the order in which it happens; called on the thread that runs it.
struct ServerEvents {
  std::function<void(const std::string& url, ServerControls controls)> listening = [](const auto&, auto) {};
  TellLoading loading = [](LogLevel, const auto&) {};  // what the loader says
  std::function<void(const Readiness& now)> ready = [](const auto&) {};
  std::function<void(std::size_t n_running)> draining = [](std::size_t) {};
  // At any time: keys were read anew, how many there are and how many are gone by that; or they stay as they were, why.
  std::function<void(const Result<KeysRead>& keys)> keys_read = [](const auto&) {};
  // Every ServerOptions::watch_every, once it is ready, as long as the engine thread has answered since the last time.
  std::function<void()> alive = [] {};
  api::TellAnswered answered;  // may be empty
  // The last: the controls may not be called any more. What still runs ends, and serve() returns.
  std::function<void()> over = [] {};
};

// Serves until it is asked to stop: listens at once, answers 503 while `load` runs on a thread of its own, then serves.
// Asked to stop it takes no more, lets what runs end for `drain`, tells every client that is left, and returns. An
// error: it could not listen, or the model could not be loaded.
Result<void> serve(const ServerOptions& options, Load load, ServerEvents events = {});

}  // namespace fermata
