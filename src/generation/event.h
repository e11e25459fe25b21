#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "generation/journal.h"
#include "generation/state.h"

namespace fermata {

// Text that may be shown, and the journal rows that became whole with it; one of the two may be empty. A row goes out
// with its last byte; at the end also one that was cut in the middle (n_bytes_cut says how much of it must not be
// shown). Rows of which nothing was released do not go out, nor does the end-of-generation token; a control token
// inside the text does, with no bytes. Every other row goes out once, in order, without a gap.
struct TextEvent {
  std::string text;  // valid UTF-8
  Position first_position = 0;
  std::vector<JournalRow> rows;  // consecutive, from first_position
  std::size_t n_bytes_cut = 0;   // last bytes of the last row, which are not in the text
};

struct PauseRecord {
  Position at = 0;        // tokens in the journal
  Position computed = 0;  // of them computed: nothing of them is computed again, unless cells and memory were short
  std::size_t n_bytes_sent = 0;
  std::size_t n_bytes_held = 0;
  std::uint32_t ordinal = 0;  // of its generation's pauses, from 0
  WaitReason reason = WaitReason::kUser;
  Duration reach;           // from the call to frozen
  bool has_logits = false;  // the row that decides the next token is there; else one step of one row makes it
};

// It entered a state, other than kFinished (FinishEvent) and the kQueued it begins with.
struct StateEvent {
  State state = State::kQueued;
  WaitReason wait_reason = WaitReason::kNone;
  PauseRecord pause;  // when state is kPaused
};

// Its journal was revised. What was told is taken back from row n_rows and from byte n_text_bytes of the text on; what
// stands there now is told next. The rows that stay are those of before.
struct RewindEvent {
  std::uint64_t version = 1;         // of the journal, from now on
  Position n_prompt = 0;             // rows of the prompt, as it is now
  Position n_rows = 0;               // that stay, the prompt's among them
  std::size_t n_bytes = 0;           // raw bytes of the completion that stay told
  std::size_t n_text_bytes = 0;      // the same of the text
  std::vector<JournalRow> prompt{};  // all of it, if it is another one now
};

// Always the last.
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
  std::variant<TextEvent, StateEvent, RewindEvent, FinishEvent> content;
};

}  // namespace fermata
