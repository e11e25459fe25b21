// What clients do to generations: pause, resume, cancel, and read at their own speed.
#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "api/desk.h"
#include "base/limits.h"

namespace fermata::api {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kBeforeItBegins = 1;  // entries of a log that says only that there is such a generation

Error not_begun() { return {Code::kWrongState, "it waits for the generation before it in its session", {}, true}; }

Error has_ended(const Dossier& dossier, std::string_view cannot) {
  return {Code::kWrongState, "it has ended and cannot be " + std::string(cannot),
          std::string(to_string(dossier.recording.end()->reason)), false};
}

Error stale(const PauseTicket& ticket) {
  return {Code::kStale, "the generation is no longer in this pause", ticket.id, false, "pause_id"};
}

Error in_no_pause(const Dossier& dossier) {
  const State state = dossier.recording.state();
  if (state == State::kPaused) return {Code::kWrongState, "it gave way to others, and goes on by itself", {}, true};
  const std::string word(to_string(state));
  return {Code::kWrongState, "it is " + word + ", and in no pause: there is nothing to resume", word, false};
}

}  // namespace

// What the engine thread answers; what it said before the answer is in the recording then.
template <class T, class Ask>
asio::awaitable<Result<T>> Desk::answer_of(std::shared_ptr<Dossier> dossier, Ask ask) {
  auto signal = std::make_shared<Signal>(executor_);
  const Reply<T> reply = ask([executor = executor_, signal] { asio::post(executor, [signal] { signal->notify(); }); });
  const Instant asked = clock_.now();
  std::optional<Result<T>> answer = reply.poll();
  while (!answer) {
    if (clock_.now() - asked >= milliseconds(limits::kEngineAnswerMs))
      co_return Error{Code::kEngine, "the engine does not answer", {}, true};
    co_await signal->wait(milliseconds(limits::kEngineAnswerMs));
    answer = reply.poll();
  }
  drain(dossier);
  co_return *std::move(answer);
}

asio::awaitable<Result<void>> Desk::pause(std::shared_ptr<Dossier> dossier, WaitReason reason) {
  if (dossier->recording.ended()) co_return has_ended(*dossier, "paused");
  if (reason == WaitReason::kUser && Sessions::hold(*dossier, clock_.now())) co_return Result<void>();
  if (dossier->core_id == kNoGeneration) co_return not_begun();
  if (dossier->interrupt_asked.ns == 0) dossier->interrupt_asked = clock_.now();
  const Result<PauseRecord> record = co_await answer_of<PauseRecord>(
      dossier, [&](Core::Wake wake) { return core_->pause(dossier->core_id, reason, std::move(wake)); });
  if (record || record.error().code != Code::kEngine) dossier->interrupt_asked = {};
  if (!record) co_return record.error();
  co_return Result<void>();
}

// Of one whose session let it: begin_resume.
asio::awaitable<Result<Status>> Desk::let_go_on(std::shared_ptr<Dossier> dossier, MeantPause meant) {
  Result<Status> status = co_await answer_of<Status>(
      dossier, [&](Core::Wake wake) { return core_->resume(dossier->core_id, meant, std::move(wake)); });
  Sessions::end_resume(*dossier);
  co_return status;
}

asio::awaitable<Result<std::size_t>> Desk::resume(std::shared_ptr<Dossier> dossier, std::string pause_id,
                                                  std::string body_digest) {
  Recording& recording = dossier->recording;
  const PauseTicket* meant = recording.pause();
  if (!pause_id.empty()) {
    const auto& tickets = recording.tickets();
    const auto place = std::find_if(tickets.begin(), tickets.end(), [&](const auto& t) { return t.id == pause_id; });
    if (place == tickets.end())
      co_return Error{Code::kNotFound, "this generation has no such pause", pause_id, false, "pause_id"};
    meant = &*place;
  }
  if (meant && !meant->resumed_with.empty()) {
    if (meant->resumed_with == body_digest) co_return meant->log_end;  // the same call again
    co_return Error{Code::kAlreadyResumed, "this pause was resumed already", meant->id, false, "pause_id"};
  }
  if (recording.ended()) co_return has_ended(*dossier, "resumed");
  if (dossier->core_id == kNoGeneration) co_return let_begin(*dossier, std::move(body_digest));
  if (meant != recording.pause()) co_return stale(*meant);
  if (!sessions_.begin_resume(*dossier))
    co_return Error{Code::kWrongState, "another generation of its session runs; pause or cancel that first",
                    dossier->head.session, false};
  if (!meant) co_return co_await resume_in_no_pause(std::move(dossier), std::move(body_digest));
  co_return co_await resume_from(std::move(dossier), meant->record.ordinal, std::move(body_digest));
}

// One that waits for its session, and was held. Once: it goes on waiting, or begins.
Result<std::size_t> Desk::let_begin(Dossier& dossier, std::string body_digest) {
  if (Sessions::let_go(dossier))
    dossier.let_go_with = std::move(body_digest);
  else if (dossier.let_go_with.empty() || dossier.let_go_with != body_digest)
    return not_begun();
  return kBeforeItBegins;
}

// Used from before the engine hears of it, so that no other call has it too.
asio::awaitable<Result<std::size_t>> Desk::resume_from(std::shared_ptr<Dossier> dossier, std::uint32_t ordinal,
                                                       std::string body_digest) {
  std::vector<PauseTicket>& tickets = dossier->recording.tickets();
  tickets[ordinal].resumed_with = std::move(body_digest);
  const MeantPause meant{WaitReason::kNone, ordinal};
  const Result<Status> resumed = co_await let_go_on(dossier, meant);
  PauseTicket& ticket = tickets[ordinal];
  // Let go by something else, such as its reader, and paused again before this came.
  const bool is_in_another = resumed && !resumed->ended_pause && resumed->state == State::kPaused;
  // It is as good as not asked for, unless there was no answer: then nobody knows.
  if (is_in_another || (!resumed && resumed.error().code != Code::kEngine)) ticket.resumed_with.clear();
  if (!resumed) co_return resumed.error();
  if (is_in_another) co_return stale(ticket);
  co_return ticket.log_end;
}

// As far as its recording knows; a pause that was asked for may be reached before the resume is.
asio::awaitable<Result<std::size_t>> Desk::resume_in_no_pause(std::shared_ptr<Dossier> dossier,
                                                              std::string body_digest) {
  std::vector<PauseTicket>& tickets = dossier->recording.tickets();
  const auto last = std::find_if(tickets.rbegin(), tickets.rend(),
                                 [](const PauseTicket& ticket) { return needs_resume(ticket.record.reason); });
  std::optional<std::size_t> repeated;  // of the resume that ended the last pause: where it went on
  if (last != tickets.rend() && last->resumed_with == body_digest) repeated = last->log_end;
  if (last == tickets.rend() && !dossier->let_go_with.empty() && dossier->let_go_with == body_digest)
    repeated = kBeforeItBegins;
  const Result<Status> resumed = co_await let_go_on(dossier, MeantPause());
  if (!resumed) co_return resumed.error();
  if (resumed->ended_pause && *resumed->ended_pause < tickets.size()) {
    PauseTicket& ended = tickets[*resumed->ended_pause];
    ended.resumed_with = std::move(body_digest);
    co_return ended.log_end;
  }
  if (repeated) co_return *repeated;
  co_return in_no_pause(*dossier);
}

asio::awaitable<Result<void>> Desk::cancel(std::shared_ptr<Dossier> dossier, EndReason reason) {
  if (dossier->recording.ended()) co_return Result<void>();
  if (dossier->core_id == kNoGeneration) {
    end_unborn(*dossier, reason);
    co_return Result<void>();
  }
  if (dossier->interrupt_asked.ns == 0) dossier->interrupt_asked = clock_.now();
  const Result<Status> status = co_await answer_of<Status>(
      dossier, [&](Core::Wake wake) { return core_->cancel(dossier->core_id, reason, std::move(wake)); });
  if (!status) {
    if (status.error().code != Code::kEngine) dossier->interrupt_asked = {};
    co_return status.error();
  }
  while (!dossier->recording.ended()) co_await dossier->changed.wait(milliseconds(limits::kEngineAnswerMs));
  dossier->interrupt_asked = {};
  co_return Result<void>();
}

asio::awaitable<Result<Inspection>> Desk::inspect(std::shared_ptr<Dossier> dossier, std::int32_t n_next) {
  if (dossier->recording.ended()) co_return has_ended(*dossier, "inspected");
  if (dossier->core_id == kNoGeneration) co_return not_begun();
  co_return co_await answer_of<Inspection>(
      dossier, [&](Core::Wake wake) { return core_->inspect(dossier->core_id, 0, n_next, std::move(wake)); });
}

asio::awaitable<Result<Anchor>> Desk::anchor_of(std::shared_ptr<Dossier> dossier) {
  co_return co_await answer_of<Anchor>(
      dossier, [&](Core::Wake wake) { return core_->anchor(dossier->core_id, std::move(wake)); });
}

asio::awaitable<Result<Revised>> Desk::put_in_place(std::shared_ptr<Dossier> dossier, Revision revision) {
  co_return co_await answer_of<Revised>(
      dossier, [&](Core::Wake wake) { return core_->revise(dossier->core_id, std::move(revision), std::move(wake)); });
}

asio::awaitable<void> Desk::cancel_all(EndReason reason) {
  const std::vector<std::shared_ptr<Dossier>> all(catalogue_.in_order().begin(), catalogue_.in_order().end());
  for (const auto& dossier : all)  // all at once: each may have to wait for a step
    if (!dossier->recording.ended() && dossier->core_id != kNoGeneration) core_->cancel(dossier->core_id, reason);
  for (const auto& dossier : all)
    if (!dossier->recording.ended()) (void)co_await cancel(dossier, reason);
}

// ------------------------------------------------------------------------------------------------------------- readers

void Desk::reader_comes(const std::shared_ptr<Dossier>& dossier, std::size_t* cursor) {
  dossier->readers.push_back(cursor);
}

// One that has no reader, or a reader that lags, must not go on for nobody: it is paused until they are gone or caught
// up.
void Desk::watch_slow_reader(const std::shared_ptr<Dossier>& dossier) {
  if (dossier->recording.state() != State::kRunning) return;
  if (dossier->n_unread() >= limits::kReaderLagMax) core_->pause(dossier->core_id, WaitReason::kSlowReader);
}

void Desk::reader_caught_up(const std::shared_ptr<Dossier>& dossier) {
  if (dossier->waits_for_its_reader()) go_on_unless_beside(dossier);
}

// Its reader is no longer the reason to stand. While another of its session runs, sweep() tries again.
void Desk::go_on_unless_beside(const std::shared_ptr<Dossier>& dossier) {
  if (!sessions_.begin_resume(*dossier)) return;
  asio::co_spawn(executor_, go_on_for_its_reader(dossier), asio::detached);
}

asio::awaitable<void> Desk::go_on_for_its_reader(std::shared_ptr<Dossier> dossier) {
  const MeantPause meant{WaitReason::kSlowReader, std::nullopt};
  (void)co_await let_go_on(std::move(dossier), meant);
}

void Desk::reader_leaves(const std::shared_ptr<Dossier>& dossier, std::size_t* cursor, bool gone) {
  std::erase(dossier->readers, cursor);
  if (!gone || !dossier->readers.empty() || dossier->recording.ended()) return;
  switch (dossier->options.on_disconnect) {
    case OnDisconnect::kDefault:
    case OnDisconnect::kCancel:
      if (dossier->core_id == kNoGeneration) return end_unborn(*dossier, EndReason::kDisconnected);
      core_->cancel(dossier->core_id, EndReason::kDisconnected);
      return;
    case OnDisconnect::kPause:
      if (!Sessions::hold(*dossier, clock_.now())) core_->pause(dossier->core_id);
      return;
    case OnDisconnect::kContinue:
      // A pause that was asked for because of it may not be reached yet; behind that this stands in the mailbox.
      if (dossier->core_id != kNoGeneration) go_on_unless_beside(dossier);
      return;
  }
}

}  // namespace fermata::api
