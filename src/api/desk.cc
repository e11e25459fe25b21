#include "api/desk.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "api/names.h"
#include "base/limits.h"

namespace fermata::api {

Desk::Desk(boost::asio::any_io_executor executor, const Clock& clock, DeskOptions options)
    : executor_(std::move(executor)),
      clock_(clock),
      options_(std::move(options)),
      lanes_(executor_, options_.n_threads),
      sessions_(executor_, *this) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  unix_offset_s_ = std::chrono::duration<double>(now).count() - static_cast<double>(clock_.now().ns) / 1e9;
}

Desk::~Desk() { lanes_.join(); }

void Desk::serve(Core& core, const ChatTemplate* chat, std::string model_name, std::string model_path) {
  chat_ = chat;
  options_.model_name = std::move(model_name);
  options_.model_path = std::move(model_path);
  prompts_ = std::make_unique<const PromptMaker>(core, chat);
  core_ = &core;
}

double Desk::unix_time(Instant instant) const { return unix_offset_s_ + static_cast<double>(instant.ns) / 1e9; }

// --------------------------------------------------------------------------------------------------------------- names

Result<std::shared_ptr<Dossier>> Desk::find(std::string_view name, const Principal& who) const {
  const Error unknown{Code::kNotFound, "there is no such generation", std::string(name), false};
  std::string id(name);
  if (name.starts_with(kClientPrefix)) {
    const auto entry = by_client_id_.find({who.tenant, std::string(name.substr(kClientPrefix.size()))});
    if (entry != by_client_id_.end()) id = entry->second;
  } else {
    for (const std::string_view prefix : {kChatPrefix, kTextPrefix})
      if (name.starts_with(prefix)) id = std::string(kGenerationPrefix).append(name.substr(prefix.size()));
  }
  const auto place = by_id_.find(id);
  if (place != by_id_.end()) {
    if (place->second->tenant != who.tenant) return unknown;
    return place->second;
  }
  if (is_forgotten(id, who))
    return Error{Code::kGone, "the generation ended and is no longer kept", std::string(name), false};
  return unknown;
}

bool Desk::is_forgotten(std::string_view id, const Principal& who) const {
  return forgotten_.contains({who.tenant, std::string(id)});
}

bool Desk::may_come(std::string_view name, const Principal& who) const {
  if (!name.starts_with(kClientPrefix)) return false;
  const auto known = find(name, who);
  return !known || ((*known)->recording.ended() &&
                    coming_.contains({who.tenant, std::string(name.substr(kClientPrefix.size()))}));
}

Result<std::shared_ptr<Dossier>> Desk::find_pause(std::string_view pause_id, const Principal& who) const {
  const auto entry = by_pause_.find(pause_id);
  if (entry == by_pause_.end())
    return Error{Code::kNotFound, "there is no such pause", std::string(pause_id), false, "pause_id"};
  Result<std::shared_ptr<Dossier>> found = find(entry->second, who);
  if (!found && found.error().code == Code::kNotFound)
    return Error{Code::kNotFound, "there is no such pause", std::string(pause_id), false, "pause_id"};
  return found;
}

std::vector<std::shared_ptr<Dossier>> Desk::all(const Principal& who) const {
  std::vector<std::shared_ptr<Dossier>> seen;
  for (const auto& dossier : in_order_)
    if (dossier->tenant == who.tenant) seen.push_back(dossier);
  return seen;
}

void Desk::for_each(const std::function<void(const Dossier&)>& look) const {
  for (const auto& dossier : in_order_) look(*dossier);
}

std::vector<std::shared_ptr<Dossier>> Desk::of_session(std::string_view session, const Principal& who) const {
  return sessions_.of(who.tenant, session);
}

std::size_t Desk::n_alive() const {
  return static_cast<std::size_t>(std::count_if(in_order_.begin(), in_order_.end(),
                                                [](const auto& dossier) { return !dossier->recording.ended(); }));
}

std::size_t Desk::n_running() const {
  const auto n_begun =
      std::count_if(in_order_.begin(), in_order_.end(), [](const auto& dossier) { return dossier->goes_on(); });
  return n_preparing_ + static_cast<std::size_t>(n_begun);
}

// ----------------------------------------------------------------------------------------------------------- following

void Desk::follow(Follower follower, std::function<void()> on_end) {
  followers_.push_back({std::move(follower), std::move(on_end)});
}

void Desk::end_following() {
  for (const Following& following : followers_)
    if (following.on_end) following.on_end();
}

// Of the entries from `first` on.
void Desk::tell_followers(const Dossier& dossier, std::size_t first) const {
  for (; first < dossier.recording.log().size(); ++first)
    for (const Following& following : followers_) following.follower(dossier, first);
}

// What the engine thread said of it goes into its recording.
void Desk::drain(const std::shared_ptr<Dossier>& dossier) {
  const std::size_t n_told = dossier->recording.log().size();
  while (const std::optional<Event> event = dossier->ring->try_pop()) dossier->recording.take(*event);
  for (std::size_t i = n_told; i < dossier->recording.log().size(); ++i) {
    const LogEntry& entry = dossier->recording.log()[i];
    if (const auto* paused = std::get_if<LogEntry::Paused>(&entry.what))
      by_pause_[dossier->recording.tickets()[paused->ticket].id] = dossier->id();
  }
  tell_followers(*dossier, n_told);
  dossier->changed.notify();
  watch_slow_reader(dossier);
}

// Ends one that the core never heard of.
void Desk::end_unborn(Dossier& dossier, EndReason reason, Error error) {
  FinishEvent end;
  end.reason = reason;
  end.error = std::move(error);
  end.n_prompt = static_cast<Position>(dossier.prompt.size());
  dossier.held_since = {};
  dossier.recording.take({0, clock_.now(), std::move(end)});
  tell_followers(dossier, dossier.recording.log().size() - 1);
  dossier.changed.notify();
}

// ---------------------------------------------------------------------------------------------------------- forgetting

// By its own names: a walk over all names for each that goes would hold up everybody.
void Desk::forget(const std::shared_ptr<Dossier>& dossier) {
  const std::string& id = dossier->id();
  for (const PauseTicket& ticket : dossier->recording.tickets()) by_pause_.erase(ticket.id);
  const auto named = by_client_id_.find({dossier->tenant, dossier->client_id});
  if (named != by_client_id_.end() && named->second == id) by_client_id_.erase(named);
  forget_key_of(*dossier);
  note_forgotten({dossier->tenant, id});
  if (!dossier->client_id.empty()) note_forgotten({dossier->tenant, std::string(kClientPrefix) + dossier->client_id});
  by_id_.erase(id);
  sessions_.leave(*dossier);
}

// Whoever comes again with its idempotency key must not start it again. Unless nobody had its answer.
void Desk::forget_key_of(const Dossier& dossier) {
  const auto entry = by_idempotency_key_.find(idempotency_name(dossier));
  if (entry == by_idempotency_key_.end() || entry->second.dossier.get() != &dossier) return;
  const auto& end = dossier.recording.end();
  if (end && end->reason == EndReason::kDisconnected) {
    by_idempotency_key_.erase(entry);
    return;
  }
  entry->second.dossier = nullptr;
  spent_keys_.emplace_back(clock_.now(), entry->first);
}

// Of the key, not of the tenant: two programs of one tenant may count their requests alike.
Desk::Key Desk::idempotency_name(const std::string& tenant, const std::string& owner, const FermataOptions& options) {
  return {tenant + "/" + owner, options.idempotency_key};
}

Desk::Key Desk::idempotency_name(const Dossier& dossier) {
  return idempotency_name(dossier.tenant, dossier.owner, dossier.options);
}

void Desk::note_forgotten(Key name) {
  if (!forgotten_.insert(name).second) return;
  forgotten_order_.push_back(std::move(name));
  if (forgotten_order_.size() <= limits::kForgottenIdsMax) return;
  forgotten_.erase(forgotten_order_.front());
  forgotten_order_.pop_front();
}

void Desk::sweep() {
  const Instant now = clock_.now();
  std::erase_if(unborn_, [&](const auto& entry) { return now - entry.second >= milliseconds(limits::kTombstoneMs); });
  for (; !spent_keys_.empty() && (spent_keys_.size() > limits::kIdempotencyKeysKept ||
                                  now - spent_keys_.front().first >= milliseconds(limits::kIdempotencyKeptMs));
       spent_keys_.pop_front())
    by_idempotency_key_.erase(spent_keys_.front().second);
  std::size_t n_finished = 0;
  std::size_t bytes = 0;
  for (const auto& dossier : in_order_) {
    n_finished += dossier->recording.ended() ? 1 : 0;
    bytes += dossier->bytes();
    const PauseTicket* pause = dossier->recording.pause();
    if (dossier->is_held() && now - dossier->held_since >= milliseconds(limits::kPauseAgeMaxMs))
      end_unborn(*dossier, EndReason::kTimeout);
    if (pause && now - pause->reached >= milliseconds(limits::kPauseAgeMaxMs))
      core_->cancel(dossier->core_id, EndReason::kTimeout);
    else if (dossier->waits_for_its_reader() && dossier->n_unread() == 0)
      go_on_unless_beside(dossier);
  }
  std::erase_if(in_order_, [&](const std::shared_ptr<Dossier>& dossier) {
    const Recording& recording = dossier->recording;
    if (!recording.ended() || !dossier->readers.empty()) return false;
    const bool is_old = now - recording.last_change() >= options_.finished_kept;
    const bool are_many = n_finished > limits::kFinishedKept || bytes > options_.finished_bytes_max;
    if (!is_old && !are_many) return false;
    --n_finished;
    bytes -= dossier->bytes();
    forget(dossier);
    return true;
  });
}

Duration Desk::longest_unreached() const {
  Duration longest;
  for (const auto& dossier : in_order_)
    if (dossier->interrupt_asked.ns != 0 && !dossier->recording.ended())
      longest = std::max(longest, clock_.now() - dossier->interrupt_asked);
  return longest;
}

}  // namespace fermata::api
