#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "engine/sampling/measures.h"
#include "engine/sampling/sampler.h"

namespace fermata {

// How a token came: with the request, from the sampler, forced by a grammar, by an edit, by what a resume put in.
enum class Origin : std::uint8_t { kPrompt, kSampled, kForced, kEdited, kInjected };
std::string_view to_string(Origin origin);

// One token of a generation and how it came to be. What the sampler said of it stays what it said then, also when an
// edit has changed what stands before.
struct JournalRow {
  TokenId token{};
  TokenRole role = TokenRole::kPrompt;  // of the prompt, or of the completion. Notes within the completion are prompt
  Origin origin = Origin::kPrompt;
  float logprob = 0;  // logprob, entropy (nats), margin: see Choice; 0 for a token that no sampler chose
  float entropy = 0;
  float margin = 0;
  SamplerCarry carry;
  Instant time;
  std::vector<TokenLogprob> top = {};  // the most likely tokens here, best first: as many as the request asked for
};

// The per-token record of a generation: what everything derived is folded from. Append-only, apart from truncate().
// Rows of the prompt add no bytes: those that come first, and notes that were put in later. Byte and token positions of
// the completion can be turned into each other:
//
//   position  0       1       2       3         4       5
//   token    |prompt |prompt |"Hel"  |<control>|"lo "  |       text() = "Hello "
//   bytes    [0,0)   [0,0)   [0,3)   [3,3)     [3,6)           bytes_begin(4) = 3, bytes_end(4) = 6
class Journal {
 public:
  void append(const JournalRow& row, std::string_view bytes);
  // Keeps the first n_rows.
  void truncate(Position n_rows);

  Position size() const { return static_cast<Position>(rows_.size()); }
  Position n_prompt() const { return n_prompt_; }        // those that come first
  Position n_generated() const { return n_generated_; }  // of the completion
  const JournalRow& operator[](Position position) const { return rows_[static_cast<std::size_t>(position)]; }
  std::span<const JournalRow> rows() const { return rows_; }
  std::span<const TokenId> tokens() const { return tokens_; }
  // Raw bytes of the completion (thought and tool markup included; not necessarily valid UTF-8).
  std::string_view text() const { return text_; }
  // Raw bytes of the completion before / up to and with a row. bytes_begin(size()) is the size of the text.
  std::size_t bytes_begin(Position position) const { return position == 0 ? 0 : bytes_end(position - 1); }
  std::size_t bytes_end(Position position) const { return bytes_end_[static_cast<std::size_t>(position)]; }
  // The token that added the byte at this offset of text(); size() for the end of the text.
  // Precondition: byte <= text().size().
  Position token_at_byte(std::size_t byte) const;

 private:
  std::vector<JournalRow> rows_;
  std::vector<TokenId> tokens_;
  std::vector<std::size_t> bytes_end_;  // ascending
  std::string text_;
  Position n_prompt_ = 0;
  Position n_generated_ = 0;
};

}  // namespace fermata
