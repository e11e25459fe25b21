#include "server/server.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "api/desk.h"
#include "api/heartbeat.h"
#include "api/http/guard.h"
#include "api/http/listener.h"
#include "api/respond.h"
#include "api/routes.h"
#include "base/limits.h"
#include "base/own_machine.h"
#include "runtime/core.h"
#include "server/key_file.h"
#include "server/metrics.h"

namespace fermata {
namespace {

namespace asio = boost::asio;
using namespace api;

// The parts, in the order in which they are made; they go in the other.
class Server {
 public:
  Server(const ServerOptions& options, Load load, ServerEvents events)
      : options_(options), load_(std::move(load)), events_(std::move(events)) {}

  Result<void> run() {
    Result<void> listens = listen();
    if (!listens) return listens;
    std::thread loader([this] {
      // Whatever says it to the operator, the loader does not wait for it.
      const auto tell = [this](LogLevel level, const std::string& line) {
        asio::post(io_, [this, level, line] { events_.loading(level, line); });
      };
      auto loaded = std::make_shared<Result<LoadedModel>>(load_(tell));
      asio::post(io_, [this, loaded] { on_loaded(*loaded); });
    });
    asio::co_spawn(io_, sweep(), asio::detached);
    if (key_file_) asio::co_spawn(io_, watch_keys(), asio::detached);
    if (options_.watch_every.ns > 0) asio::co_spawn(io_, watch_engine(), asio::detached);
    io_.run();
    loader.join();
    events_.over();
    return outcome_;
  }

  // What works for requests reads the vocabulary and the samplers, which go with the core. The core's thread calls into
  // the io_context until it is joined, and into nothing of the desk but by that.
  ~Server() {
    if (desk_) desk_->lanes().join();
    core_.reset();
    desk_.reset();
  }

 private:
  Result<void> listen();
  void on_loaded(Result<LoadedModel>& loaded);
  void asked_to_stop();
  asio::awaitable<void> stop();
  asio::awaitable<void> sweep();
  void read_keys();
  void tell_answered(const AnsweredRequest& request) const;
  asio::awaitable<void> watch_keys();
  asio::awaitable<void> watch_engine();
  asio::awaitable<void> sleep(Duration duration);

  const ServerOptions& options_;
  Load load_;
  ServerEvents events_;
  SystemClock clock_;
  asio::io_context io_{1};
  std::optional<LoadedModel> model_;
  std::unique_ptr<Core> core_;
  std::unique_ptr<Desk> desk_;
  std::optional<Metrics> metrics_;
  Router router_;
  std::optional<KeyFile> key_file_;
  std::optional<Guard> guard_;
  std::unique_ptr<Listener> listener_;
  bool is_local_ = true;    // only this machine can call it
  bool was_asked_ = false;  // to stop
  bool hurry_ = false;      // and again
  bool is_over_ = false;
  Result<void> outcome_;
};

// An address of our own is no name that an attacker could point at us.
std::vector<std::string> hosts_of(const ServerOptions& options, const asio::ip::address& address) {
  std::vector<std::string> hosts = options.hosts;
  if (address.is_unspecified()) return hosts;
  hosts.push_back(address.is_v6() ? "[" + asio::ip::address_v6(address.to_v6().to_bytes()).to_string() + "]"
                                  : address.to_string());
  return hosts;
}

// Whoever calls it by another name comes from elsewhere, through a proxy, and without keys may do everything.
Result<void> check_names(const ServerOptions& options, bool has_keys) {
  for (const std::string& host : options.hosts)
    if (const auto name = host_of(host);
        !has_keys && name && !names_own_machine(*name))  // what is no name Guard refuses
      return Error{Code::kInvalidArgument,
                   "with --allow-host " + host +
                       " others can call this server, so it wants API keys: 'fermata new-key "
                       "NAME --append keys' makes some, --api-key-file keys names them",
                   {},
                   false,
                   "allow-host"};
  return {};
}

Result<void> Server::listen() {
  const Result<asio::ip::address> at = parse_address(options_.host);
  if (!at) return at.error();
  is_local_ = at->is_loopback();
  DeskOptions desk;
  desk.model_aliases = options_.model_aliases;
  desk.keep_alive = options_.keep_alive;
  desk.pause_wait = options_.pause_wait;
  desk_ = std::make_unique<Desk>(io_.get_executor(), clock_, std::move(desk));
  metrics_.emplace(*desk_, options_.n_log_lines_lost);
  add_routes(router_, *desk_, [this] { return metrics_->text(); });

  GuardOptions guard;
  guard.hosts = hosts_of(options_, *at);
  guard.origins = options_.origins;
  if (!options_.api_key_file.empty()) {
    key_file_.emplace(options_.api_key_file);
    auto keys = key_file_->read();
    if (!keys) return keys.error();
    guard.keys = *std::move(keys);
  }
  Result<Guard> made = Guard::make(std::move(guard));
  if (!made) return made.error();
  guard_.emplace(*std::move(made));
  if (const Result<void> safe = check_names(options_, guard_->has_keys()); !safe) return safe;

  ListenerOptions listens;
  listens.address = *at;
  listens.port = options_.port;
  if (events_.answered) listens.answered = [this](const AnsweredRequest& request) { tell_answered(request); };
  listens.noted_header = "x-fermata-generation";
  listens.limits.websocket_ping = std::max(options_.keep_alive, milliseconds(limits::kWebSocketPingLeastMs));
  Result<std::unique_ptr<Listener>> listener = Listener::bind(
      io_.get_executor(), clock_, router_, *guard_, [](const Error& error) { return error_response(error); },
      std::move(listens));
  if (!listener) return listener.error();
  listener_ = *std::move(listener);
  listener_->start();
  events_.listening(listener_->url(), {[this] { asio::post(io_, [this] { asked_to_stop(); }); },
                                       [this] { asio::post(io_, [this] { read_keys(); }); }});
  return {};
}

// 503 is what everybody should hear while the model is loaded, and a probe while the server stops: it asks every few
// seconds.
void Server::tell_answered(const AnsweredRequest& request) const {
  const bool is_as_it_should_be = !desk_->ready() || (desk_->draining() && is_probe(request));
  if (request.status != 503 || !is_as_it_should_be) return events_.answered(request);
  AnsweredRequest told = request;
  told.ending = Ending::kWell;
  events_.answered(told);
}

void Server::on_loaded(Result<LoadedModel>& loaded) {
  if (is_over_) return;
  if (!loaded) {
    outcome_ = loaded.error();
    asio::co_spawn(io_, stop(), asio::detached);
    return;
  }
  model_.emplace(*std::move(loaded));
  core_ = std::make_unique<Core>(std::move(model_->engine), clock_, options_.loop);
  desk_->serve(*core_, model_->chat.get(), model_->name, model_->path);
  events_.ready({core_->info(), model_->name, listener_->url(), model_->chat ? model_->chat->origin() : "",
                 guard_->has_keys(), is_local_ ? std::vector<std::string>() : guard_->hosts()});
}

asio::awaitable<void> Server::sleep(Duration duration) {
  asio::steady_timer timer(io_, std::chrono::nanoseconds(duration.ns));
  boost::system::error_code ignored;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

asio::awaitable<void> Server::sweep() {
  while (!is_over_) {
    co_await sleep(milliseconds(limits::kDeskSweepMs));
    if (!is_over_ && desk_->ready()) desk_->sweep();
  }
}

// Whoever has a key that is gone is let go of at once: a key may be taken away because somebody else has it.
void Server::read_keys() {
  if (!key_file_) return;
  const auto read = key_file_->read();
  const auto gone = read ? guard_->replace_keys(*read) : Result<std::vector<ApiKeys::Hash>>(read.error());
  if (!gone) return events_.keys_read(gone.error());
  listener_->end_all_of(*gone);
  events_.keys_read(KeysRead{(*read)->size(), gone->size()});
}

asio::awaitable<void> Server::watch_keys() {
  while (!is_over_) {
    co_await sleep(milliseconds(limits::kApiKeyFileLookMs));
    if (!is_over_ && key_file_->is_changed()) read_keys();
  }
}

// Until the very end: a stop may hang too.
asio::awaitable<void> Server::watch_engine() {
  Heartbeat heartbeat;
  for (;;) {
    co_await sleep(options_.watch_every);
    if (core_ && heartbeat.look(*core_, clock_.now())) events_.alive();
  }
}

void Server::asked_to_stop() {
  if (std::exchange(was_asked_, true)) {
    hurry_ = true;
    return;
  }
  asio::co_spawn(io_, stop(), asio::detached);
}

// What runs may end by itself; what is paused cannot, nor what waits in a queue behind it.
asio::awaitable<void> Server::stop() {
  if (std::exchange(is_over_, true)) co_return;
  if (!desk_->ready()) {
    events_.draining(0);
  } else {
    desk_->begin_drain();
    events_.draining(desk_->n_running());
    const Instant begun = clock_.now();
    while (desk_->n_running() > 0 && !hurry_ && clock_.now() - begun < options_.drain)
      co_await sleep(milliseconds(limits::kDrainLookMs));
    co_await desk_->cancel_all(EndReason::kShutdown);
    desk_->end_following();
  }
  co_await listener_->stop(options_.linger);
  io_.stop();
}

}  // namespace

Result<void> serve(const ServerOptions& options, Load load, ServerEvents events) {
  return Server(options, std::move(load), std::move(events)).run();
}

}  // namespace fermata
