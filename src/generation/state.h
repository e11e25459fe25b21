#pragma once

#include <cstddef>
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
  kRestoring,  // goes on, but its pages must come in first
  kFinished,   // its EndReason says how; its cells may serve as prefix cache
};

// What makes a generation leave a state.
enum class Trigger : std::uint8_t {
  kAdmit,         // room was found
  kAskPause,      // pause asked, its rows are in a step under way
  kReachPause,    // frozen now
  kResume,        // goes on: it has its sequence and its cells
  kRequeue,       // goes on, but must be admitted (again) first: it was never admitted, or gave its cells away
  kStartRestore,  // goes on; its pages begin to come in
  kEndRestore,    // they are in
  kFinish,        // ended; takes an EndReason
};

// Why a queued, paused or restoring generation does not run.
enum class WaitReason : std::uint8_t {
  kNone,
  kQueue,       // others were first
  kCells,       // no room in the pool
  kUser,        // a person or program asked for the pause
  kNewMessage,  // a new message of its session came, which runs instead
  kPauseAt,     // the request asked to be paused at this token
  kRule,        // a rule of the pause policy
  kHuman,       // waits for a decision
  kTool,        // waits for a tool result
  kResource,    // pressure or heat
  kSlowReader,  // its client does not take what was sent; goes on when it does
  kPreempted,   // gave way to another generation
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

// Who is behind a pause.
enum class InterruptClass : std::uint8_t {
  kUser,       // somebody asked for it, now or in the request
  kCondition,  // a rule
  kResource,   // want of room, or of a reader
};
InterruptClass interrupt_class(WaitReason reason);
std::string_view to_string(InterruptClass who);

// Sizes of the enums: the last value plus one.
inline constexpr std::size_t kStates = static_cast<std::size_t>(State::kFinished) + 1;
inline constexpr std::size_t kTriggers = static_cast<std::size_t>(Trigger::kFinish) + 1;
inline constexpr std::size_t kWaitReasons = static_cast<std::size_t>(WaitReason::kPreempted) + 1;
inline constexpr std::size_t kInterruptClasses = static_cast<std::size_t>(InterruptClass::kResource) + 1;
inline constexpr std::size_t kEndReasons = static_cast<std::size_t>(EndReason::kError) + 1;

// Names as they go over the wire, e.g. "pause_at".
std::string_view to_string(State state);
std::string_view to_string(Trigger trigger);
std::string_view to_string(WaitReason reason);
std::string_view to_string(EndReason reason);

// What a state guarantees, what a trigger or reason stands for: sentences for docs/states.md.
std::string_view meaning(State state);
std::string_view meaning(Trigger trigger);
std::string_view meaning(WaitReason reason);
std::string_view meaning(EndReason reason);

// Somebody asked for this pause, so somebody must resume it. The others end by themselves when their cause is gone.
bool needs_resume(WaitReason reason);

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
