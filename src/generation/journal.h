#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "engine/sampling/sampler.h"

namespace fermata {

enum class Origin : std::uint8_t { kPrompt, kSampled, kForced, kEdited, kInjected };
std::string_view to_string(Origin origin);

// One token of a generation and how it came to be.
struct JournalRow {
  TokenId token{};
  Origin origin = Origin::kPrompt;
  float logprob = 0;  // logprob, entropy (nats), margin: see Choice; 0 for prompt tokens
  float entropy = 0;
  float margin = 0;
  SamplerCarry carry;
  Instant time;
};

// The per-token record of a generation: what everything derived is folded from. Append-only, apart from truncate().
// bytes_end(i) counts the raw bytes of generated tokens up to and with row i (0 for all prompt rows), so that byte and
// token positions of the completion can be turned into each other.
class Journal {
 public:
  void append(const JournalRow& row, std::string_view bytes);
  void truncate(Position n_rows);

  Position size() const { return static_cast<Position>(rows_.size()); }
  Position n_prompt() const { return n_prompt_; }
  Position n_generated() const { return size() - n_prompt_; }
  const JournalRow& operator[](Position position) const { return rows_[static_cast<std::size_t>(position)]; }
  std::span<const JournalRow> rows() const { return rows_; }
  std::span<const TokenId> tokens() const { return tokens_; }
  // Raw bytes of the completion (thought and tool markup included; not necessarily valid UTF-8).
  std::string_view text() const { return text_; }
  std::size_t bytes_end(Position position) const { return bytes_end_[static_cast<std::size_t>(position)]; }

 private:
  std::vector<JournalRow> rows_;
  std::vector<TokenId> tokens_;
  std::vector<std::size_t> bytes_end_;
  std::string text_;
  Position n_prompt_ = 0;
};

}  // namespace fermata
