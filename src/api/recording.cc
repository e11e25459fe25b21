#include "api/recording.h"

#include <utility>

#include "api/names.h"
#include "base/check.h"

namespace fermata::api {

void Recording::begin(Instant created) {
  FERMATA_CHECK(log_.empty());
  add({created, LogEntry::Created{}});
}

void Recording::add(LogEntry entry) {
  log_.push_back(std::move(entry));
  bytes_ += sizeof(LogEntry);
}

void Recording::take(const Event& event) {
  last_change_ = event.time;
  if (const auto* text = std::get_if<TextEvent>(&event.content)) {
    text_.add(*text);
    add({event.time, *text});
    bytes_ += 2 * (text->text.size() + text->rows.size() * sizeof(JournalRow));
    for (const JournalRow& row : text->rows) bytes_ += 2 * row.top.size() * sizeof(TokenLogprob);
  } else if (const auto* state = std::get_if<StateEvent>(&event.content)) {
    take_state(*state, event.time);
  } else if (const auto* rewind = std::get_if<RewindEvent>(&event.content)) {
    text_.take_back(*rewind);
    version_ = rewind->version;
    add({event.time, *rewind});
    bytes_ += rewind->prompt.size() * sizeof(JournalRow);
  } else if (const auto* finish = std::get_if<FinishEvent>(&event.content)) {
    state_ = State::kFinished;
    wait_reason_ = WaitReason::kNone;
    end_ = *finish;
    add({event.time, *finish});
  }
}

void Recording::take_state(const StateEvent& event, Instant time) {
  const bool was_paused = state_ == State::kPaused || state_ == State::kRestoring || state_ == State::kQueued;
  const bool is_first = tickets_.empty();
  state_ = event.state;
  wait_reason_ = event.wait_reason;
  if (event.state == State::kPaused) {
    tickets_.push_back({new_id(kPausePrefix), event.pause, time, log_.size() + 1, {}});
    add({time, LogEntry::Paused{tickets_.size() - 1}});
    bytes_ += sizeof(PauseTicket);
  } else if (event.state == State::kRunning) {
    if (was_paused && !is_first) add({time, LogEntry::Resumed{}});
    if (!std::exchange(has_begun_, true)) add({time, LogEntry::Begun{}});
  }
}

AnswerText Recording::text_until(std::size_t log_end) const {
  AnswerText text;
  for (std::size_t i = 0; i < log_end; ++i) {
    if (const auto* said = std::get_if<TextEvent>(&log_[i].what)) text.add(*said);
    if (const auto* rewind = std::get_if<RewindEvent>(&log_[i].what)) text.take_back(*rewind);
  }
  return text;
}

PauseTicket* Recording::pause() {
  return state_ == State::kPaused && needs_resume(wait_reason_) ? &tickets_.back() : nullptr;
}

}  // namespace fermata::api
