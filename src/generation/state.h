#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace fermata {

// Where a generation is. There is no prefill or decode state: a running generation has wanted tokens and computed ones,
// and steps make the second catch up with the first.
enum class State : std::uint8_t {
  kQueued,     // waits for room; holds no sequence and no cells
  kRunning,    // takes part in steps
  kPausing,    // a pause was asked for while a step with its rows was under way; no further token will be sampled
  kPaused,     // frozen: takes part in no step, its state is complete and readable
  kRestoring,  // pages are coming in; then paused or running as it was
  kFinished,   // its EndReason says how; its cells may serve as prefix cache
};

// What makes a generation leave a state.
enum class Trigger : std::uint8_t {
  kAdmit,         // room was found
  kAskPause,      // pause asked, its rows are in a step under way
  kReachPause,    // frozen now
  kResume,        // goes on
  kStartRestore,  // pages begin to come in
  kEndRestore,    // they are in
  kFinish,        // ended; takes an EndReason
};

// Why a queued, paused or restoring generation does not run.
enum class WaitReason : std::uint8_t {
  kNone,
  kQueue,      // others were first
  kCells,      // no room in the pool
  kUser,       // a person or program asked for the pause
  kPauseAt,    // the request asked to be paused at this token
  kRule,       // a rule of the pause policy
  kHuman,      // waits for a decision
  kTool,       // waits for a tool result
  kResource,   // pressure or heat
  kPreempted,  // gave way to another generation
};

enum class EndReason : std::uint8_t {
  kNone,
  kStop,    // end-of-generation token, or a stop string
  kLength,  // its token limit, or the pool's end
  kToolCalls,
  kContentFilter,
  kCancelled,
  kReplaced,  // a new message of its session took its place
  kTimeout,
  kDisconnected,
  kShutdown,
  kError,
};

std::string_view to_string(State state);
std::string_view to_string(Trigger trigger);
std::string_view to_string(WaitReason reason);
std::string_view to_string(EndReason reason);

struct Transition {
  State from;
  Trigger trigger;
  State to;
  std::string_view meaning;  // for docs/states.md, which is generated from the table
};

// All transitions there are; what is not here is refused.
std::span<const Transition> transitions();
std::optional<State> next_state(State from, Trigger trigger);

}  // namespace fermata
