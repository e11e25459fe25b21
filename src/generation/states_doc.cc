#include "generation/states_doc.h"

#include <sstream>
#include <string_view>

#include "generation/state.h"

namespace fermata {
namespace {

constexpr std::string_view kIntroduction = R"(# States of a generation

<!-- Written by `fermata_states_doc` from src/generation/state.cc. Change it there, then run
     `fermata_states_doc > docs/states.md`; a test compares the two. -->

A generation has one state. Why it waits and why it ended are reasons of their own, not states. There is no state for
prefill or decode: a running generation has wanted tokens and computed ones, and a step makes the second catch up with
the first. A transition that is not in the table below is refused (`wrong_state`), and nothing changes.
)";

template <class Enum>
void list_meanings(std::ostream& out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const Enum value = static_cast<Enum>(i);
    out << "- **" << to_string(value) << "**: " << meaning(value) << "\n";
  }
}

void draw_diagram(std::ostream& out) {
  out << "```mermaid\nstateDiagram-v2\n    [*] --> " << to_string(State::kQueued) << "\n";
  for (const Transition& transition : transitions())
    out << "    " << to_string(transition.from) << " --> " << to_string(transition.to) << ": "
        << to_string(transition.trigger) << "\n";
  out << "    " << to_string(State::kFinished) << " --> [*]\n```\n";
}

void list_transitions(std::ostream& out) {
  out << "| from | trigger | to | when |\n|---|---|---|---|\n";
  for (const Transition& transition : transitions())
    out << "| " << to_string(transition.from) << " | " << to_string(transition.trigger) << " | "
        << to_string(transition.to) << " | " << transition.meaning << " |\n";
}

}  // namespace

std::string states_doc() {
  std::ostringstream out;
  out << kIntroduction << "\n## States\n";
  list_meanings<State>(out, kStates);
  out << "\n## Transitions\n\n";
  draw_diagram(out);
  out << "\n";
  list_transitions(out);
  out << "\n## Triggers\n";
  list_meanings<Trigger>(out, kTriggers);
  out << "\n## Why a generation waits\n";
  list_meanings<WaitReason>(out, kWaitReasons);
  out << "\n## Why a generation ended\n";
  list_meanings<EndReason>(out, kEndReasons);
  return out.str();
}

}  // namespace fermata
