#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/limits.h"
#include "generation/generation.h"
#include "runtime/command.h"
#include "runtime/pager.h"

namespace fermata {

// A generation and what the engine thread keeps beside it: its place in the pool, its reader, who waits for an answer.
struct Live {
  Live(std::unique_ptr<Generation> its_generation, std::shared_ptr<EventRing> its_events)
      : generation(std::move(its_generation)), events(std::move(its_events)) {}

  std::unique_ptr<Generation> generation;
  std::shared_ptr<EventRing> events;

  std::optional<SeqId> seq;  // none while it waits for room, and once it is finished
  PageStack pages;           // of what it computed, outside the pool
  bool leaves = false;       // paused, and giving up its cells, page by page
  bool comes_back = false;   // paused by no one's wish: goes on by itself as soon as it has left and there is room
  Instant arrival;           // of its submission
  Instant last_planned;      // its last rows

  std::deque<Event> unsent;                       // what its ring had no room for
  PauseRecord pause;                              // the pause it is in
  std::vector<Reply<PauseRecord>> pause_replies;  // to be answered when the pause is reached
  std::vector<Inspect> inspections;               // to be answered when its logits are there
  std::vector<Command> deferred;                  // would have overtaken the pause or inspection they came after

  bool is(State state) const { return generation->state() == state; }
  Position n_uncomputed() const { return generation->wanted() - generation->computed(); }
  bool waits_for_room() const { return is(State::kQueued) || (comes_back && !seq && !reader_is_slow()); }
  // Tokens whose keys and values its sequence has.
  Position n_in_pool() const { return !seq ? 0 : pages.empty() ? generation->computed() : pages.begin(); }
  std::span<const TokenId> tokens_in_pool() const {
    return generation->journal().tokens().first(static_cast<std::size_t>(n_in_pool()));
  }
  // What it computed is in the pool, and stays there.
  bool is_settled() const { return seq && pages.empty() && !leaves; }

  // Its reader has not taken what it was sent: nothing more is made until there is room.
  bool reader_is_slow() const { return !unsent.empty() || events->n_free() < limits::kEventsPerTokenMax; }

  // Whether a step may carry its rows: it runs, or somebody wants to read the logits of its frozen point.
  bool may_step() const {
    if (!is_settled() || n_uncomputed() == 0) return false;
    if (is(State::kRunning)) return !reader_is_slow();
    return is(State::kPaused) && !inspections.empty();
  }
};

}  // namespace fermata
