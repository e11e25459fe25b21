#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "api/openai/answer.h"
#include "base/clock.h"
#include "generation/event.h"
#include "generation/state.h"

namespace fermata::api {

// A pause as its client knows it.
struct PauseTicket {
  std::string id;  // pau_…
  PauseRecord record;
  Instant reached;
  std::size_t log_end = 0;   // entries of the log before what a resume adds
  std::string resumed_with;  // digest of the body that used it; empty: not used yet
};

// What is told to who follows a generation, numbered by its place in the log.
struct LogEntry {
  Instant time;
  struct Created {};  // always the first
  struct Begun {};    // it runs for the first time
  // A pause stands as the place of its ticket; a resume as nothing.
  struct Paused {
    std::size_t ticket = 0;
  };
  struct Resumed {};
  std::variant<Created, Begun, TextEvent, Paused, Resumed, RewindEvent, FinishEvent> what;
};

// All that a generation said, kept so that a reader may come late, come again, or look at another part: the truth that
// streams, records and lists are read from. Pure; owner: the io thread.
class Recording {
 public:
  // The first entry, before anything is taken: that there is such a generation.
  void begin(Instant created);
  void take(const Event& event);
  // It waits for this now, as far as it has not begun.
  void wait_for(WaitReason reason) { wait_reason_ = reason; }

  State state() const { return state_; }
  WaitReason wait_reason() const { return wait_reason_; }
  bool ended() const { return end_.has_value(); }
  const std::optional<FinishEvent>& end() const { return end_; }
  // The pause it is in, if somebody has to resume it.
  PauseTicket* pause();
  const PauseTicket* pause() const { return const_cast<Recording*>(this)->pause(); }
  std::vector<PauseTicket>& tickets() { return tickets_; }
  const std::vector<PauseTicket>& tickets() const { return tickets_; }

  const std::vector<LogEntry>& log() const { return log_; }
  const AnswerText& text() const { return text_; }
  // What was said and not taken back, when the log had so many entries.
  AnswerText text_until(std::size_t log_end) const;
  std::uint64_t version() const { return version_; }  // of the journal
  // The rows that may be shown: one of which a stop string or a filter took a part would tell of that part.
  std::span<const JournalRow> rows() const {
    return std::span(text_.rows).first(text_.rows.size() - (text_.n_bytes_cut > 0 ? 1 : 0));
  }
  Instant last_change() const { return last_change_; }
  std::size_t bytes() const { return bytes_; }  // about what it takes in memory

 private:
  void add(LogEntry entry);
  void take_state(const StateEvent& event, Instant time);

  State state_ = State::kQueued;
  WaitReason wait_reason_ = WaitReason::kQueue;
  bool has_begun_ = false;
  std::optional<FinishEvent> end_;
  std::vector<PauseTicket> tickets_;
  std::vector<LogEntry> log_;
  AnswerText text_;
  std::uint64_t version_ = 1;
  Instant last_change_;
  std::size_t bytes_ = 0;
};

}  // namespace fermata::api
