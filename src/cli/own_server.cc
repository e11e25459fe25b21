#include "cli/own_server.h"

#include <future>
#include <utility>

#include "server/server.h"

namespace fermata::cli {
namespace {

Result<LoadedModel> load(const EngineFlags& flags) {
  Result<OpenedEngine> opened = open_engine(flags);
  if (!opened) return opened.error();
  if (!opened->chat) {
    const Error& why = opened->no_chat;
    return Error{Code::kUnsupported, "this model has no chat template that works; name one with --chat-template-file",
                 why.message + (why.detail.empty() ? "" : ": " + why.detail), false};
  }
  return to_serve(*std::move(opened), flags);
}

ServerOptions options() {
  ServerOptions options;
  options.port = 0;
  options.drain = milliseconds(0);
  options.linger = milliseconds(100);
  return options;
}

}  // namespace

Result<std::unique_ptr<OwnServer>> OwnServer::start(const EngineFlags& engine) {
  std::unique_ptr<OwnServer> own(new OwnServer());
  std::promise<Result<void>> begun;
  std::future<Result<void>> has_begun = begun.get_future();
  own->thread_ = std::thread([engine, own = own.get(), begun = std::move(begun)]() mutable {
    bool is_ready = false;
    ServerEvents events;
    events.listening = [&](const std::string& url, const ServerControls& controls) {
      const std::lock_guard lock(own->mutex_);
      own->url_ = url;
      own->stop_ = controls.stop;
    };
    events.over = [&] {
      const std::lock_guard lock(own->mutex_);
      own->stop_ = nullptr;  // there is nothing left to be stopped
    };
    events.ready = [&](const Readiness&) {
      is_ready = true;
      begun.set_value({});
    };
    Result<void> served = serve(
        options(), [&](const TellLoading&) { return load(engine); }, std::move(events));
    if (!is_ready) begun.set_value(served ? Error{Code::kDraining, "the server was stopped", {}, false} : served);
  });
  Result<void> result = has_begun.get();
  if (!result) return result.error();
  return own;
}

OwnServer::~OwnServer() {
  {
    const std::lock_guard lock(mutex_);
    if (stop_) stop_();
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace fermata::cli
