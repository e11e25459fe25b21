// How a request becomes a generation: names, caps, repeats.
#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "api/desk.h"
#include "api/names.h"
#include "api/openai/json.h"
#include "base/limits.h"

namespace fermata::api {
namespace {
namespace asio = boost::asio;

Error stopping() { return {Code::kDraining, "the server is stopping; ask another one", {}, true}; }

}  // namespace

Result<void> Desk::check_model(const Call& call) const {
  const auto& aliases = options_.model_aliases;
  if (call.model.empty() || call.model == options_.model_name ||
      std::find(aliases.begin(), aliases.end(), call.model) != aliases.end())
    return {};
  return Error{Code::kModelNotFound,
               "there is no such model here; this server has " + options_.model_name +
                   "; start it with --alias NAME to let clients call it so",
               call.model, false, "model"};
}

// What the engine has is among them, so its cap on generations is never reached behind the 200 of a stream.
Result<void> Desk::check_caps(const Principal& who, std::size_t n_more) const {
  std::size_t n_alive = 0;
  std::size_t n_paused = 0;
  std::size_t n_alive_of_all = 0;
  std::size_t n_waiting_of_all = 0;  // for the engine
  for (const auto& dossier : catalogue_.in_order()) {
    if (dossier->recording.ended()) continue;
    ++n_alive_of_all;
    if (dossier->core_id != kNoGeneration && dossier->recording.state() == State::kQueued) ++n_waiting_of_all;
    if (dossier->owner != who.name || dossier->tenant != who.tenant) continue;
    ++n_alive;
    if (dossier->recording.state() == State::kPaused) ++n_paused;
  }
  struct Cap {
    std::size_t n;
    std::size_t n_max;
    const char* message;
  };
  for (const Cap& cap : {
           Cap{n_waiting_of_all, limits::kWaitingMax, "too many generations are waiting; try again later"},
           Cap{n_alive_of_all, limits::kGenerationsMax, "too many generations are alive; try again later"},
           Cap{n_alive, limits::kAlivePerKeyMax, "this key has too many generations; end some or wait"},
           Cap{n_paused, limits::kPausedPerKeyMax, "this key has too many paused generations; resume or cancel some"},
       })
    if (cap.n + n_more > cap.n_max)
      return Error{Code::kBusy, cap.message, std::to_string(cap.n) + ", limit " + std::to_string(cap.n_max), true};
  return {};
}

// Of those that have not ended, a name is one's: or what a cancel by that name ends would be a matter of luck.
Result<void> Desk::check_client_id(const Call& call, const Principal& who) const {
  const std::string& client_id = call.fermata.client_id;
  if (client_id.empty()) return {};
  const std::shared_ptr<Dossier> named = catalogue_.find_client_id(who.tenant, client_id);
  if (!named || named->recording.ended()) return {};
  return Error{Code::kDuplicate, "another generation that has not ended has this client_id", client_id, false,
               "fermata.client_id"};
}

std::optional<Result<Desk::Opened>> Desk::repeated(const Call& call, const Principal& who,
                                                   const std::string& digest) const {
  const auto before = keys_.find(call, who, digest);
  if (!before) return std::nullopt;
  if (!*before) return before->error();
  return Opened{**before, true};
}

std::shared_ptr<Dossier> Desk::file(const Call& call, const Principal& who, Prompt prompt) {
  auto dossier = std::make_shared<Dossier>(executor_);
  AnswerHead& head = dossier->head;
  head.route = call.route;
  name_answer(head);
  head.model = options_.model_name;
  head.session = call.fermata.session;
  head.system_fingerprint = "fp_" + core_->info().fingerprint.substr(0, 16);
  head.seed = call.request.sampling.seed;
  head.logprobs = call.logprobs;
  head.n_top_logprobs = call.request.n_top_logprobs;
  if (prompts_->model_thinks() && call.route == Route::kChat)
    head.thought = {std::string(kThoughtBegin), std::string(kThoughtEnd), prompt.opens_thought};
  head.include_usage = call.include_usage;
  head.stream_events = call.fermata.stream_events;
  dossier->client_id = call.fermata.client_id;
  dossier->tenant = who.tenant;
  dossier->owner = who.name;
  dossier->options = call.fermata;
  if (!call.fermata.metadata.empty()) dossier->n_metadata_bytes = to_text(call.fermata.metadata).size();
  dossier->priority = call.request.priority;
  dossier->prompt = std::move(prompt.tokens);

  enter(dossier);
  return dossier;
}

// Its ids; the route is known.
void Desk::name_answer(AnswerHead& head) {
  head.generation_id = new_id(kGenerationPrefix);
  head.id = std::string(head.route == Route::kChat ? kChatPrefix : kTextPrefix)
                .append(head.generation_id.substr(kGenerationPrefix.size()));
}

// From now on it is there for clients.
void Desk::enter(const std::shared_ptr<Dossier>& dossier) {
  dossier->created = clock_.now();
  dossier->head.created = static_cast<std::int64_t>(unix_time(dossier->created));
  dossier->recording.begin(dossier->created);
  catalogue_.file(dossier);
  sessions_.join(dossier);
  tell_followers(*dossier, 0);
}

asio::awaitable<Result<Desk::Opened>> Desk::open(Call call, Principal who, std::string body_digest,
                                                 std::shared_ptr<Leaver> leaver) {
  if (draining_) co_return stopping();
  if (auto again = repeated(call, who, body_digest)) co_return *std::move(again);
  if (auto checked = check_model(call); !checked) co_return checked.error();
  if (auto checked = check_caps(who); !checked) co_return checked.error();
  if (auto checked = check_client_id(call, who); !checked) co_return checked.error();
  if (!call.has_seed) call.request.sampling.seed = new_seed();

  // Tokenising, compiling a grammar and folding a long prompt take their time elsewhere.
  Prompt prompt;
  call.request.prefix_group = prefix_groups_.emplace(who.tenant, prefix_groups_.size()).first->second;
  // Who asked for its generation to go on without it is not waited for to stay.
  const OnDisconnect gone = call.fermata.on_disconnect;
  if (gone == OnDisconnect::kContinue || gone == OnDisconnect::kPause) leaver = nullptr;
  arrivals_.begin(who.tenant, call.fermata.client_id);
  const auto work = [&] { return prompts_->prepare(call, prompt); };
  Result<Generation> prepared = co_await lanes_.run(n_work(call), std::move(leaver), work);
  // In no destructor: those of what waits when the process ends run after the desk's.
  arrivals_.end(who.tenant, call.fermata.client_id);
  if (draining_) co_return stopping();
  if (!prepared) co_return prepared.error();
  // Others came in while this one was prepared.
  if (auto again = repeated(call, who, body_digest)) co_return *std::move(again);
  if (auto checked = check_caps(who); !checked) co_return checked.error();
  if (auto checked = check_client_id(call, who); !checked) co_return checked.error();

  const std::shared_ptr<Dossier> dossier = file(call, who, std::move(prompt));
  keys_.remember(dossier, std::move(body_digest));
  if (arrivals_.take_cancel(who.tenant, dossier->client_id)) {
    end_unborn(*dossier, EndReason::kCancelled);
    co_return Opened{dossier};
  }
  auto generation = std::make_shared<Generation>(*std::move(prepared));
  const Result<void> started = co_await sessions_.take_place(dossier, std::move(generation));
  if (!started) {
    undo(dossier, started.error());
    co_return started.error();
  }
  co_return Opened{dossier};
}

// It will not start: whoever reads it already is told why, and its names and its key are free again.
void Desk::undo(const std::shared_ptr<Dossier>& dossier, Error error) {
  if (!dossier->recording.ended()) end_unborn(*dossier, EndReason::kError, std::move(error));
  keys_.release(*dossier);
  forget(std::span(&dossier, 1));
}

Result<void> Desk::start(const std::shared_ptr<Dossier>& dossier, const std::shared_ptr<Generation>& prepared) {
  if (dossier->recording.ended()) return {};  // cancelled meanwhile
  return start_in_core(dossier, std::move(*prepared), false);
}

Result<void> Desk::start_in_core(const std::shared_ptr<Dossier>& dossier, Generation&& prepared, bool paused) {
  dossier->request = prepared.valid_request();
  const Result<Started> started = core_->start(
      std::move(prepared),
      [this, executor = executor_, weak = std::weak_ptr<Dossier>(dossier)] {
        asio::post(executor, [this, weak] {
          if (const auto alive = weak.lock()) drain(alive);
        });
      },
      paused);
  if (!started) return started.error();
  dossier->core_id = started->id;
  dossier->ring = started->events;
  drain(dossier);
  return {};
}

}  // namespace fermata::api
