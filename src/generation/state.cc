#include "generation/state.h"

#include <array>

#include "base/check.h"

namespace fermata {
namespace {

template <class Enum>
struct Words {
  Enum value;
  std::string_view name;
  std::string_view meaning;
};

constexpr std::array<Words<State>, kStates> kStateWords{{
    {State::kQueued, "queued",
     "Waits for room. It holds no sequence id and no cells, and nothing of it is computed for it. It is admitted by "
     "priority, then by order of arrival."},
    {State::kRunning, "running",
     "Takes part in steps: each computes some of its wanted tokens, and when all are computed the next one is sampled. "
     "The only state besides pausing that counts as running time, and the only one in which a token is sampled."},
    {State::kPausing, "pausing",
     "A pause was asked for while a step with its rows was under way. No further token will be sampled or sent; the "
     "pause is reached when that step is done or aborted. A pause is never called off: a resume that comes in between "
     "is refused here, so that every pause asked for has one record (or is overtaken by the end); who takes calls "
     "keeps the resume until the pause is reached."},
    {State::kPaused, "paused",
     "Frozen: it takes part in no step and gets no token, and its state (journal, folded state, and the logits row "
     "that decides the next token, where it was computed) is complete and readable. Time spent here counts towards no "
     "time limit. A generation that was paused while queued holds no cells; one that others needed the cells of has "
     "its "
     "keys and values in pages outside the pool."},
    {State::kRestoring, "restoring",
     "Its pages of keys and values are coming back into the pool, one between two steps of others; then it runs. It "
     "gets no token meanwhile, and the time counts towards no time limit. A pause is reached at once: what is in stays "
     "in, and the rest comes when it is resumed."},
    {State::kFinished, "finished",
     "Final. Its end reason says how it ended, its last event was the end, and no event follows. Its journal stays "
     "readable until it is forgotten; its computed cells may serve as prefix cache."},
}};

constexpr std::array<Words<Trigger>, kTriggers> kTriggerWords{{
    {Trigger::kAdmit, "admit", "Room was found: a sequence id, and cells for what it needs first."},
    {Trigger::kAskPause, "ask_pause", "A pause was asked for while a step with its rows is under way."},
    {Trigger::kReachPause, "reach_pause", "It is frozen now."},
    {Trigger::kResume, "resume", "It goes on; it has its sequence and its cells."},
    {Trigger::kRequeue, "requeue",
     "It goes on, but must be admitted first: it never was, or it gave its cells away meanwhile."},
    {Trigger::kStartRestore, "start_restore", "It goes on, and its pages begin to come in."},
    {Trigger::kEndRestore, "end_restore", "Its pages are in; what could not be brought in is computed again."},
    {Trigger::kFinish, "finish", "It ended, by itself or from outside."},
}};

constexpr std::array<Words<WaitReason>, kWaitReasons> kWaitWords{{
    {WaitReason::kNone, "none", "It does not wait."},
    {WaitReason::kQueue, "queue", "Others were first."},
    {WaitReason::kCells, "cells", "The pool has no room for it now."},
    {WaitReason::kUser, "user", "A person or program asked for the pause."},
    {WaitReason::kNewMessage, "new_message", "A new message of its session came, which runs instead."},
    {WaitReason::kPauseAt, "pause_at", "Its request asked for a pause at this token."},
    {WaitReason::kRule, "rule", "A rule of the pause policy held it."},
    {WaitReason::kHuman, "human", "It waits for a decision."},
    {WaitReason::kTool, "tool", "It waits for the result of a tool."},
    {WaitReason::kResource, "resource", "Memory pressure or heat."},
    {WaitReason::kSlowReader, "slow_reader",
     "Its client does not take what it was sent; it goes on when that reads again."},
    {WaitReason::kPreempted, "preempted", "It gave way to another generation."},
}};

constexpr std::array<Words<EndReason>, kEndReasons> kEndWords{{
    {EndReason::kNone, "none", "It has not ended."},
    {EndReason::kStop, "stop", "An end-of-generation token, or a stop string."},
    {EndReason::kLength, "length", "Its token limit, or the end of the pool."},
    {EndReason::kToolCalls, "tool_calls", "It wrote tool calls, which the client now runs."},
    {EndReason::kContentFilter, "content_filter", "A rule ended it; text that was still held is not released."},
    {EndReason::kCancelled, "cancelled", "A person or program cancelled it."},
    {EndReason::kReplaced, "replaced", "A new message of its session took its place."},
    {EndReason::kTimeout, "timeout", "Its time limit, or no progress for too long."},
    {EndReason::kDisconnected, "disconnected", "Its client went away."},
    {EndReason::kShutdown, "shutdown", "The server stopped."},
    {EndReason::kError, "error", "It could not go on; the error says why."},
}};

constexpr std::array kTransitions{
    Transition{State::kQueued, Trigger::kAdmit, State::kRunning, "room was found"},
    Transition{State::kQueued, Trigger::kStartRestore, State::kRestoring,
               "room was found for what was taken out of the pool"},
    Transition{State::kQueued, Trigger::kReachPause, State::kPaused,
               "paused before it was admitted; it holds no cells"},
    Transition{State::kQueued, Trigger::kFinish, State::kFinished, "ended before it began"},
    Transition{State::kRunning, Trigger::kAskPause, State::kPausing,
               "a pause was asked for during a step with its rows"},
    Transition{State::kRunning, Trigger::kReachPause, State::kPaused,
               "paused between steps: asked for, due at this token, or preempted"},
    Transition{State::kRunning, Trigger::kFinish, State::kFinished, "it wrote its end, or was ended"},
    Transition{State::kPausing, Trigger::kReachPause, State::kPaused, "the step under way is done or aborted"},
    Transition{State::kPausing, Trigger::kFinish, State::kFinished, "cancelled before the pause was reached"},
    Transition{State::kPaused, Trigger::kReachPause, State::kPaused,
               "paused for another reason than before: a preempted one that a user pauses stays until it is resumed"},
    Transition{State::kPaused, Trigger::kResume, State::kRunning, "goes on from where it stood"},
    Transition{State::kPaused, Trigger::kRequeue, State::kQueued, "goes on as soon as there is room again"},
    Transition{State::kPaused, Trigger::kStartRestore, State::kRestoring,
               "goes on, but a part of it is outside the pool"},
    Transition{State::kPaused, Trigger::kFinish, State::kFinished, "ended while paused"},
    Transition{State::kRestoring, Trigger::kEndRestore, State::kRunning, "its pages are in"},
    Transition{State::kRestoring, Trigger::kReachPause, State::kPaused, "paused, or preempted, while they came in"},
    Transition{State::kRestoring, Trigger::kFinish, State::kFinished, "ended while its pages came in"},
};

// The table by state and trigger, so that a look-up is one load. The compiler refuses a table that is ambiguous.
using Row = std::array<std::optional<State>, kTriggers>;
constexpr std::array<Row, kStates> index_transitions() {
  std::array<Row, kStates> index{};
  for (const Transition& transition : kTransitions) {
    auto& entry = index[static_cast<std::size_t>(transition.from)][static_cast<std::size_t>(transition.trigger)];
    if (entry.has_value()) throw "two transitions leave one state by one trigger";
    entry = transition.to;
  }
  return index;
}
constexpr std::array<Row, kStates> kIndex = index_transitions();

// Every table stands in the order of its enum, so that a value is an index.
template <class Enum, std::size_t n>
constexpr bool in_order(const std::array<Words<Enum>, n>& words) {
  for (std::size_t i = 0; i < n; ++i)
    if (static_cast<std::size_t>(words[i].value) != i || words[i].name.empty() || words[i].meaning.empty())
      return false;
  return true;
}
static_assert(in_order(kStateWords) && in_order(kTriggerWords) && in_order(kWaitWords) && in_order(kEndWords));

template <class Enum, std::size_t n>
const Words<Enum>& words_of(const std::array<Words<Enum>, n>& words, Enum value) {
  FERMATA_CHECK_LT(static_cast<std::size_t>(value), n);
  return words[static_cast<std::size_t>(value)];
}

}  // namespace

std::string_view to_string(State state) { return words_of(kStateWords, state).name; }
std::string_view to_string(Trigger trigger) { return words_of(kTriggerWords, trigger).name; }
std::string_view to_string(WaitReason reason) { return words_of(kWaitWords, reason).name; }
std::string_view to_string(EndReason reason) { return words_of(kEndWords, reason).name; }

std::string_view meaning(State state) { return words_of(kStateWords, state).meaning; }
std::string_view meaning(Trigger trigger) { return words_of(kTriggerWords, trigger).meaning; }
std::string_view meaning(WaitReason reason) { return words_of(kWaitWords, reason).meaning; }
std::string_view meaning(EndReason reason) { return words_of(kEndWords, reason).meaning; }

bool needs_resume(WaitReason reason) {
  switch (reason) {
    case WaitReason::kUser:
    case WaitReason::kNewMessage:
    case WaitReason::kPauseAt:
    case WaitReason::kRule:
    case WaitReason::kHuman:
    case WaitReason::kTool:
    case WaitReason::kSlowReader: return true;
    case WaitReason::kNone:
    case WaitReason::kQueue:
    case WaitReason::kCells:
    case WaitReason::kResource:
    case WaitReason::kPreempted: return false;
  }
  return false;
}

InterruptClass interrupt_class(WaitReason reason) {
  switch (reason) {
    case WaitReason::kUser:
    case WaitReason::kNewMessage:
    case WaitReason::kPauseAt:
    case WaitReason::kHuman:
    case WaitReason::kTool: return InterruptClass::kUser;
    case WaitReason::kRule: return InterruptClass::kCondition;
    case WaitReason::kNone:
    case WaitReason::kQueue:
    case WaitReason::kCells:
    case WaitReason::kResource:
    case WaitReason::kSlowReader:
    case WaitReason::kPreempted: return InterruptClass::kResource;
  }
  return InterruptClass::kResource;
}

std::string_view to_string(InterruptClass who) {
  switch (who) {
    case InterruptClass::kUser: return "user";
    case InterruptClass::kCondition: return "condition";
    case InterruptClass::kResource: return "resource";
  }
  return "resource";
}

std::span<const Transition> transitions() { return kTransitions; }

std::optional<State> next_state(State from, Trigger trigger) {
  return kIndex[static_cast<std::size_t>(from)][static_cast<std::size_t>(trigger)];
}

}  // namespace fermata
