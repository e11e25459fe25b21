#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "coverage.h"
#include "generation/event.h"
#include "generation/request.h"
#include "reference.h"
#include "runtime/command.h"

namespace fermata::sim {

// What must hold of one generation, whatever is done to it and its neighbours: checked against everything it says
// (events) and everything that is answered about it. Throws Failure.
class Watch {
 public:
  Watch(GenerationId id, Request request, FakeModel model, Coverage& coverage)
      : id_(id), request_(std::move(request)), model_(std::move(model)), coverage_(&coverage) {}

  void on_event(const Event& event);
  void on_inspection(const Inspection& inspection);
  // Answers that say it had ended at that time, or was frozen then: checked when the events are there.
  void claim_ended(Instant at) { ended_by_ = ended_by_ ? std::min(*ended_by_, at) : at; }
  void claim_frozen(Position n_generated) { frozen_claims_.insert(n_generated); }
  // So many tokens are computed while it stands frozen there: no more than when it froze, or none if it was parked.
  void claim_still(Position n_generated, Position computed) { still_claims_.insert({n_generated, computed}); }
  // A look at the frozen point may have taken a row.
  void note_inspected() { inspected_ = true; }
  // All its events are there.
  void check_claims() const;

  State state() const { return state_; }
  WaitReason wait_reason() const { return wait_reason_; }
  std::size_t n_pauses() const { return frozen_.size(); }
  bool finished() const { return finish_.has_value(); }
  const FinishEvent& finish() const { return *finish_; }
  const Request& request() const { return request_; }
  const Reference& reference();
  // Text it holds back while paused; what a server that forgets to hold it would send.
  std::string held_text();
  // Longest time that a turn and a jump of the clock took so far: a time limit is looked at once a turn.
  void set_turn_max(Duration turn_max) { turn_max_ = turn_max; }

 private:
  struct Frozen {
    Position n_generated = 0;
    Position computed = 0;
    bool has_logits = false;
    Instant asked;
    std::optional<Instant> resumed;
  };

  void on_text(const TextEvent& text);
  void on_state(const StateEvent& event, Instant now);
  void on_pause(const PauseRecord& record, Instant now);
  void on_finish(const FinishEvent& finish, Instant now);
  void check_natural_end(const FinishEvent& finish);
  void check_cut_short(const FinishEvent& finish, Instant now);
  void check_text(std::size_t n_generated, bool finished, bool releases);
  void check_row(Position position, const JournalRow& row);
  // Nothing is sampled between the call for a pause and the resume.
  void check_time(Position n_before, const JournalRow& row);
  void enter(State state, Instant now);
  std::string where() const;

  GenerationId id_;
  Request request_;
  FakeModel model_;
  Coverage* coverage_;
  std::optional<Reference> reference_;

  State state_ = State::kQueued;
  WaitReason wait_reason_ = WaitReason::kQueue;
  std::uint64_t n_events_ = 0;
  Instant last_event_;
  std::string text_;
  std::size_t n_rows_ = 0;       // of the completion, told
  std::size_t n_bytes_cut_ = 0;  // of the last of them
  std::vector<JournalRow> rows_;
  std::vector<Frozen> frozen_;
  std::optional<FinishEvent> finish_;
  Instant finished_at_;
  Instant running_since_;
  Instant last_progress_;
  Duration running_before_;
  Duration turn_max_;
  std::optional<Instant> ended_by_;
  std::set<Position> frozen_claims_;
  std::set<std::pair<Position, Position>> still_claims_;
  bool inspected_ = false;
};

}  // namespace fermata::sim
