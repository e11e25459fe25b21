#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/limits.h"
#include "generation/generation.h"
#include "runtime/command.h"

namespace fermata {

// A generation and what the engine thread keeps beside it: its place in the pool, its reader, who waits for an answer.
struct Live {
  Live(std::unique_ptr<Generation> its_generation, std::shared_ptr<EventRing> its_events)
      : generation(std::move(its_generation)), events(std::move(its_events)) {}

  std::unique_ptr<Generation> generation;
  std::shared_ptr<EventRing> events;

  std::optional<SeqId> seq;  // none while it waits for room, and once it is finished
  bool comes_back = false;   // paused without a sequence, and goes on by itself as soon as there is room
  Instant arrival;           // of its submission
  Instant last_planned;      // its last rows

  std::deque<Event> unsent;                       // what its ring had no room for
  PauseRecord pause;                              // the pause it is in
  std::vector<Reply<PauseRecord>> pause_replies;  // to be answered when the pause is reached
  std::vector<Inspect> inspections;               // to be answered when its logits are there
  std::vector<Command> deferred;                  // would have overtaken the pause or inspection they came after

  bool is(State state) const { return generation->state() == state; }
  Position n_uncomputed() const { return generation->wanted() - generation->computed(); }
  bool waits_for_room() const { return is(State::kQueued) || (comes_back && !reader_is_slow()); }

  // Its reader has not taken what it was sent: nothing more is made until there is room.
  bool reader_is_slow() const { return !unsent.empty() || events->n_free() < limits::kEventsPerTokenMax; }

  // Whether a step may carry its rows: it runs, or somebody wants to read the logits of its frozen point.
  bool may_step() const {
    if (!seq || n_uncomputed() == 0) return false;
    if (is(State::kRunning)) return !reader_is_slow();
    return is(State::kPaused) && !inspections.empty() && n_uncomputed() == 1;
  }
};

}  // namespace fermata
