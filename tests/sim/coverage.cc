#include "coverage.h"

#include <algorithm>
#include <array>

namespace fermata::sim {
namespace {

// Seeds in which a thing must happen once, on average.
struct Required {
  std::string_view what;
  std::uint64_t seeds_per_count;
};

constexpr std::array kRequired{
    // --- every transition of the table
    Required{"queued -> running", 1},
    Required{"queued -> restoring", 10},
    Required{"queued -> paused", 5},
    Required{"queued -> finished", 5},
    Required{"running -> pausing", 8},
    Required{"running -> paused", 1},
    Required{"running -> finished", 1},
    Required{"pausing -> paused", 8},
    Required{"pausing -> finished", 150},
    Required{"paused -> paused", 50},
    Required{"paused -> running", 1},
    Required{"paused -> queued", 5},
    Required{"paused -> restoring", 40},
    Required{"paused -> finished", 5},
    Required{"restoring -> running", 10},
    Required{"restoring -> paused", 40},
    Required{"restoring -> finished", 200},
    // --- why it waits, why it ended
    Required{"waits: queue", 5},
    Required{"waits: cells", 20},
    Required{"waits: user", 1},
    Required{"waits: pause_at", 5},
    Required{"waits: preempted", 5},
    Required{"waits: slow_reader", 5},
    Required{"ends: stop", 1},
    Required{"ends: length", 1},
    Required{"ends: content_filter", 20},
    Required{"ends: cancelled", 1},
    Required{"ends: replaced", 20},
    Required{"ends: timeout", 20},
    Required{"ends: disconnected", 10},
    Required{"ends: shutdown", 20},
    Required{"ends: error", 10},
    Required{"error: engine", 20},
    Required{"error: no cells", 50},
    Required{"error: grammar", 20},
    // --- refusals
    Required{"refused: pause, not found", 20},
    Required{"refused: resume, not found", 20},
    Required{"refused: cancel, not found", 20},
    Required{"refused: inspect, not found", 20},
    Required{"refused: status, not found", 20},
    Required{"refused: pause, wrong state", 5},
    Required{"refused: resume, wrong state", 5},
    Required{"refused: inspect, wrong state", 5},
    Required{"refused: mailbox busy", 400},
    Required{"refused: too many", 400},
    // --- steps
    Required{"step aborted: prefill", 5},
    Required{"short prompts together", 50},
    Required{"step aborted: decode alone", 5},
    Required{"step aborted: several, all interrupted", 100},
    Required{"step aborted: by the engine", 20},
    Required{"step kept: a neighbour was in it", 10},
    Required{"step kept: the one before was aborted", 20},
    Required{"step failed, its rows tried alone", 100},
    // --- the pool
    Required{"hole reused", 1},
    Required{"prefix found", 1},
    Required{"eviction", 1},
    Required{"preemption", 4},
    Required{"parking", 10},
    Required{"page out", 2},
    Required{"page in", 2},
    Required{"pages dropped, computed again", 40},
    // --- pauses, readers
    Required{"paused with logits", 1},
    Required{"paused without logits", 1},
    Required{"paused with held text", 20},
    Required{"paused anew in a step", 5},
    Required{"inspection: logits were held", 10},
    Required{"inspection: took a row", 10},
    Required{"inspection: no logits", 10},
    Required{"inspection: text was held", 10},
    Required{"reader slow", 5},
    Required{"reader gone", 10},
    Required{"stop string matched", 10},
    Required{"text cut inside a token", 100},
};

}  // namespace

void Coverage::transition(State from, State to) {
  count(std::string(to_string(from)) + " -> " + std::string(to_string(to)));
}

void Coverage::wait(State state, WaitReason reason) {
  if (state == State::kQueued || state == State::kPaused) count("waits: " + std::string(to_string(reason)));
}

void Coverage::end(EndReason reason) { count("ends: " + std::string(to_string(reason))); }

std::uint64_t Coverage::of(std::string_view what) const {
  const auto entry = counts_.find(what);
  return entry == counts_.end() ? 0 : entry->second;
}

std::vector<std::string> Coverage::missing(std::uint64_t n_seeds) const {
  std::vector<std::string> lines;
  for (const Required& required : kRequired) {
    const std::uint64_t n_min = n_seeds / required.seeds_per_count;
    const std::uint64_t n = of(required.what);
    if (n < n_min)
      lines.push_back(std::string(required.what) + ": " + std::to_string(n) + " times, at least " +
                      std::to_string(n_min) + " wanted");
  }
  return lines;
}

std::string Coverage::table() const {
  std::string text;
  for (const auto& [what, n] : counts_) {
    text += "  " + what;
    text.append(what.size() < 44 ? 44 - what.size() : 1, ' ');
    text += std::to_string(n) + "\n";
  }
  return text;
}

}  // namespace fermata::sim
