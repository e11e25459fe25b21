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

// ------------------------------------------------------------------------------------------------- what there is

bool Desk::may_come(std::string_view name, const Principal& who) const {
  if (!name.starts_with(kClientPrefix)) return false;
  const auto known = find(name, who);
  if (!known && known.error().code != Code::kGone) return true;
  const bool has_ended = !known || (*known)->recording.ended();
  return has_ended && arrivals_.is_coming(who.tenant, std::string(name.substr(kClientPrefix.size())));
}

void Desk::for_each(const std::function<void(const Dossier&)>& look) const {
  for (const auto& dossier : catalogue_.in_order()) look(*dossier);
}

std::size_t Desk::n_alive() const {
  const auto& all = catalogue_.in_order();
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [](const auto& dossier) { return !dossier->recording.ended(); }));
}

std::size_t Desk::n_running() const {
  const auto& all = catalogue_.in_order();
  const auto n_begun = std::count_if(all.begin(), all.end(), [](const auto& dossier) { return dossier->goes_on(); });
  return arrivals_.n() + static_cast<std::size_t>(n_begun);
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
  while (const std::optional<Event> event = dossier->ring->try_pop()) {
    dossier->recording.take(*event);
    const auto* rewind = std::get_if<RewindEvent>(&event->content);
    if (!rewind || rewind->prompt.empty()) continue;
    dossier->prompt.clear();
    for (const JournalRow& row : rewind->prompt) dossier->prompt.push_back(row.token);
  }
  for (std::size_t i = n_told; i < dossier->recording.log().size(); ++i) {
    const LogEntry& entry = dossier->recording.log()[i];
    if (const auto* paused = std::get_if<LogEntry::Paused>(&entry.what))
      catalogue_.name_pause(dossier->recording.tickets()[paused->ticket].id, *dossier);
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

void Desk::forget(std::span<const std::shared_ptr<Dossier>> dossiers) {
  catalogue_.forget(dossiers);
  for (const auto& dossier : dossiers) {
    keys_.forget(*dossier, clock_.now());
    sessions_.leave(*dossier);
  }
}

void Desk::sweep() {
  const Instant now = clock_.now();
  heartbeat_.look(*core_, now);
  arrivals_.sweep(now);
  keys_.sweep(now);
  std::size_t n_finished = 0;
  std::size_t bytes = 0;
  for (const auto& dossier : catalogue_.in_order()) {
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
  std::vector<std::shared_ptr<Dossier>> over;
  for (const auto& dossier : catalogue_.in_order()) {
    const Recording& recording = dossier->recording;
    if (!recording.ended() || !dossier->readers.empty()) continue;
    const bool is_old = now - recording.last_change() >= options_.finished_kept;
    const bool are_many = n_finished > limits::kFinishedKept || bytes > options_.finished_bytes_max;
    if (!is_old && !are_many) continue;
    --n_finished;
    bytes -= dossier->bytes();
    over.push_back(dossier);
  }
  forget(over);
}

Duration Desk::silent_for() {
  const Instant now = clock_.now();
  if (core_) heartbeat_.look(*core_, now);
  return heartbeat_.silent_for(now);
}

Duration Desk::longest_unreached() const {
  Duration longest;
  for (const auto& dossier : catalogue_.in_order())
    if (dossier->interrupt_asked.ns != 0 && !dossier->recording.ended())
      longest = std::max(longest, clock_.now() - dossier->interrupt_asked);
  return longest;
}

}  // namespace fermata::api
