#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/ids.h"
#include "engine/engine.h"
#include "generation/generation.h"

namespace fermata {

// The rows of one step, and whose they are.
//
//   rows   | a a a | b b | c c c c |        parts: a, b, c; the last row of a part that computes all its generation
//                                           wants has logits, which decide the next token
class Batch {
 public:
  enum class Kind { kDecode, kPrefill };  // one row of each part; more, of prompts
  struct Part {
    GenerationId id = kNoGeneration;
    std::size_t first_row = 0;
    Position n_rows = 0;
    std::size_t last_row() const { return first_row + static_cast<std::size_t>(n_rows) - 1; }
  };
  explicit Batch(Kind kind) : kind_(kind) {}

  // The next n_max tokens of it, or as many as it wants.
  void add(const Generation& generation, SeqId seq, Position n_max) {
    const std::span<const TokenId> tokens = generation.next_tokens(n_max);
    parts_.push_back({generation.id(), rows_.size(), static_cast<Position>(tokens.size())});
    Position position = generation.computed();
    for (const TokenId token : tokens) {
      rows_.push_back({token, position, seq, position + 1 == generation.wanted()});
      ++position;
    }
  }

  Kind kind() const { return kind_; }
  bool empty() const { return rows_.empty(); }
  std::span<const Row> rows() const { return rows_; }
  std::span<const Part> parts() const { return parts_; }
  bool decides_next(const Part& part) const { return rows_[part.last_row()].wants_logits; }

 private:
  Kind kind_;
  std::vector<Row> rows_;
  std::vector<Part> parts_;
};

}  // namespace fermata
