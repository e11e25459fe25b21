// What the engine thread does with each command. The rest of the loop is in engine_loop.cc.
#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/limits.h"
#include "engine/sampling/measures.h"
#include "runtime/engine_loop.h"

namespace fermata {
namespace {

Error not_found(GenerationId id) {
  return {Code::kNotFound, "there is no such generation, or it ended too long ago", std::to_string(raw(id)), false};
}

Error wrong_state(std::string_view cannot, const Status& status) {
  return {Code::kWrongState, std::string(cannot), "it is " + std::string(to_string(status.state)), false};
}

bool is_meant(const MeantPause& meant, const Generation& generation) {
  return (meant.reason == WaitReason::kNone || meant.reason == generation.wait_reason()) &&
         (!meant.ordinal || *meant.ordinal == generation.pause_record().ordinal);
}

GenerationId target_of(const Command& command) {
  return std::visit(
      [](const auto& what) {
        if constexpr (requires { what.id; })
          return what.id;
        else
          return what.generation->id();
      },
      command.what);
}

}  // namespace

Result<void> EngineLoop::post(Command&& command) {
  const bool is_interrupt = std::holds_alternative<Pause>(command.what) || std::holds_alternative<Cancel>(command.what);
  const GenerationId id = target_of(command);
  using Lane = Mailbox<Command>::Lane;
  const Result<void> taken = mailbox_.put(is_interrupt ? Lane::kControl : Lane::kWork, std::move(command));
  if (taken && is_interrupt) interrupts_.interrupt(id);
  return taken;
}

void EngineLoop::take_commands() {
  interrupts_.begin_commands();
  handle_commands(mailbox_.take_all());
}

void EngineLoop::handle_commands(std::vector<Command> commands) {
  for (Command& command : commands) handle(command);
}

void EngineLoop::handle(Command& command) {
  Live* live = roster_.find(target_of(command));
  if (live && must_wait(*live, command)) {
    live->deferred.push_back(std::move(command));
    return;
  }
  std::visit([&](auto& what) { on(what, command.asked); }, command.what);
}

// Until a pause is reached, and a frozen point that somebody wants to see is read, what would overtake that waits; and
// what comes after something that waits. Only a cancel gets through.
bool EngineLoop::must_wait(const Live& live, const Command& command) const {
  if (std::holds_alternative<Cancel>(command.what)) return false;
  if (!live.deferred.empty()) return true;
  if (live.is(State::kPausing)) return !std::holds_alternative<Pause>(command.what);
  return !live.inspections.empty() &&
         (std::holds_alternative<Resume>(command.what) || std::holds_alternative<Revise>(command.what));
}

bool EngineLoop::in_flight(GenerationId id) const {
  return std::find(in_flight_.begin(), in_flight_.end(), id) != in_flight_.end();
}

void EngineLoop::on(Submit& submit, Instant asked) {
  Live& live = roster_.add(Live(std::move(submit.generation), std::move(submit.events)));
  live.arrival = live.last_planned = asked;
  if (submit.paused) freeze(live, WaitReason::kUser);
  if (roster_.size() > options_.n_generations_max)
    end(live, EndReason::kError,
        {Code::kBusy, "too many generations are alive; try again later",
         "limit " + std::to_string(options_.n_generations_max), true});
}

void EngineLoop::on(Pause& pause, Instant asked) {
  Live* live = roster_.find(pause.id);
  const std::optional<Status> ended = live ? std::nullopt : roster_.ended(pause.id);
  if (!live && !ended) return pause.reply.send(not_found(pause.id));
  if (!live || live->is(State::kFinished))
    return pause.reply.send(wrong_state("it has ended and cannot be paused", live ? status_of(*live) : *ended));
  // Whose reader was slow is paused again, so that it does not go on when that reads.
  const bool is_held = live->is(State::kPaused) && !live->comes_back &&
                       (live->pause.reason != WaitReason::kSlowReader || pause.reason == WaitReason::kSlowReader);
  if (is_held) return pause.reply.send(live->pause);
  live->comes_back = false;
  live->pause_replies.push_back(pause.reply);
  if (live->is(State::kPausing)) return;
  live->generation->note_pause_asked(asked);
  if (live->is(State::kRunning) && in_flight(pause.id)) {
    FERMATA_CHECK(live->generation->apply(Trigger::kAskPause, pause.reason, clock_.now()).has_value());
  } else {
    freeze(*live, pause.reason);
  }
}

void EngineLoop::on(Resume& resume, Instant) {
  Live* live = roster_.find(resume.id);
  const std::optional<Status> ended = live ? std::nullopt : roster_.ended(resume.id);
  if (!live && !ended) return resume.reply.send(not_found(resume.id));
  if (!live || live->is(State::kFinished))
    return resume.reply.send(wrong_state("it has ended and cannot be resumed", live ? status_of(*live) : *ended));
  const bool stands = live->is(State::kPaused) && !live->comes_back && is_meant(resume.meant, *live->generation);
  if (stands) go_on(*live);
  roster_.deliver(*live);  // whoever has the answer knows that it is no longer paused
  Status status = status_of(*live);
  if (stands) status.ended_pause = live->generation->pause_record().ordinal;
  resume.reply.send(status);
}

// Its pause is not one that ends by itself, so nothing happens to it before somebody asks.
Result<Live*> EngineLoop::find_held(GenerationId id, std::string_view cannot) {
  Live* live = roster_.find(id);
  const std::optional<Status> ended = live ? std::nullopt : roster_.ended(id);
  if (!live && !ended) return not_found(id);
  if (!live || !live->is(State::kPaused) || live->comes_back)
    return wrong_state(cannot, live ? status_of(*live) : *ended);
  return live;
}

void EngineLoop::on(TakeAnchor& take, Instant) {
  const Result<Live*> live = find_held(take.id, "only of a paused generation can an anchor be taken; pause it first");
  if (!live) return take.reply.send(live.error());
  take.reply.send((*live)->generation->anchor());
}

void EngineLoop::on(Revise& revise, Instant) {
  const Result<Live*> found = find_held(revise.id, "only a paused generation can be edited; pause it first");
  if (!found) return revise.reply.send(found.error());
  Live& live = **found;
  const Position first_changed = revise.revision->first_changed();
  if (const auto done = live.generation->revise(std::move(*revise.revision), clock_.now()); !done)
    return revise.reply.send(done.error());
  keep_computed(live);
  live.pause = live.generation->pause_record();
  roster_.deliver(live);  // whoever has the answer has been told of it
  revise.reply.send(Revised{live.pause, live.generation->version(), first_changed});
}

void EngineLoop::on(Cancel& cancel, Instant) {
  Live* live = roster_.find(cancel.id);
  if (live) {
    if (!live->is(State::kFinished)) end(*live, cancel.reason);
    return cancel.reply.send(status_of(*live));
  }
  const std::optional<Status> ended = roster_.ended(cancel.id);
  if (!ended) return cancel.reply.send(not_found(cancel.id));
  cancel.reply.send(*ended);
}

void EngineLoop::on(GetStatus& get, Instant) {
  const Live* live = roster_.find(get.id);
  const std::optional<Status> status = live ? status_of(*live) : roster_.ended(get.id);
  if (!status) return get.reply.send(not_found(get.id));
  get.reply.send(*status);
}

void EngineLoop::on(Inspect& inspect, Instant) {
  Live* live = roster_.find(inspect.id);
  const std::optional<Status> ended = live ? std::nullopt : roster_.ended(inspect.id);
  if (!live && !ended) return inspect.reply.send(not_found(inspect.id));
  if (!live || !live->is(State::kPaused))
    return inspect.reply.send(
        wrong_state("only a paused generation can be inspected; pause it first", live ? status_of(*live) : *ended));
  live->inspections.push_back(inspect);
  // The logits of the frozen point may take a row of the next step, or after an edit what it left to be computed; other
  // than that everything is there.
  const bool row_comes = in_flight(inspect.id) || (live->is_settled() && live->n_uncomputed() > 0);
  if (live->generation->has_logits() || !row_comes) answer_inspections(*live);
}

void EngineLoop::frozen_point_is_read(Live& live) {
  answer_inspections(live);
  for (Command& command : std::exchange(live.deferred, {})) handle(command);
}

void EngineLoop::answer_inspections(Live& live) {
  const Generation& generation = *live.generation;
  for (const Inspect& inspect : std::exchange(live.inspections, {})) {
    Inspection answer;
    answer.status = status_of(live);
    const auto rows = generation.journal().rows();
    const std::size_t n_wanted = static_cast<std::size_t>(std::clamp(inspect.n_rows, 0, limits::kInspectRowsMax));
    const std::size_t n_rows = std::min(rows.size(), n_wanted);
    answer.n_rows_sent = generation.n_rows_out();
    answer.n_bytes_held = generation.pause_record().n_bytes_held;
    answer.has_logits = generation.has_logits();
    answer.last_rows.assign(rows.end() - static_cast<std::ptrdiff_t>(n_rows), rows.end());
    if (answer.has_logits) {
      const std::span<const float> logits = generation.held_logits();
      answer.next =
          log_softmax_top(logits, static_cast<std::size_t>(std::clamp(inspect.n_next, 0, limits::kTopLogprobsMax)));
      RowScan scan;
      scan_row(logits, scan);
      answer.next_entropy = measure_row(logits, scan).entropy;
    }
    inspect.reply.send(std::move(answer));
  }
}

}  // namespace fermata
