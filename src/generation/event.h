#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "generation/journal.h"
#include "generation/state.h"

namespace fermata {

// Text that may be shown, and the journal rows that became whole with it. A row goes out with its last released byte; a
// row without a released byte (cut off by a stop string, control token) does not go out. Held-back text is in neither.
struct TextEvent {
  std::string text;  // valid UTF-8
  Position first_position = 0;
  std::vector<JournalRow> rows;  // consecutive, from first_position
};

struct PauseRecord {
  Position at = 0;        // tokens in the journal
  Position computed = 0;  // of them computed: their keys and values are in the pool
  std::size_t n_bytes_sent = 0;
  std::size_t n_bytes_held = 0;
  WaitReason reason = WaitReason::kUser;
  Duration reach;           // from the call to frozen
  bool has_logits = false;  // the row that decides the next token is there; else one step of one row makes it
};

struct StateEvent {
  State state = State::kQueued;
  WaitReason wait_reason = WaitReason::kNone;
  PauseRecord pause;  // when state is kPaused
};

struct FinishEvent {
  EndReason reason = EndReason::kNone;
  Error error;  // when reason is kError
  Position n_prompt = 0;
  Position n_cached = 0;  // prompt tokens that were not computed for this generation
  Position n_generated = 0;
  std::string stop_string;  // the one that matched, if any
};

// What a generation tells its reader, numbered from 0 without gaps.
struct Event {
  std::uint64_t number = 0;
  Instant time;
  std::variant<TextEvent, StateEvent, FinishEvent> content;
};

}  // namespace fermata
