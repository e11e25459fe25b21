#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "engine/engine.h"
#include "generation/event.h"
#include "generation/fold.h"
#include "generation/journal.h"
#include "generation/request.h"

namespace fermata {

// A frozen point of a generation, copied: all that decides what follows, and what of it was told. Revisions and
// branches are made from it, on any thread, while the generation itself stays where it is.
struct Anchor {
  GenerationId id = kNoGeneration;
  std::uint64_t version = 1;  // of its journal: how often it was revised, from 1
  ValidRequest request;
  Journal journal;
  std::size_t n_bytes_out = 0;  // raw bytes of the completion that were told
  std::vector<float> logits;    // [n_vocab], of the row that decides the next token; empty: not known
};

// Rows [begin, end) of a journal give way to tokens. begin == end: an insertion.
struct Splice {
  Position begin = 0;
  Position end = 0;
  std::vector<TokenId> tokens;
  TokenRole role = TokenRole::kGenerated;
  Origin origin = Origin::kEdited;
};

// A journal with other tokens, or another request for what follows, and everything that is folded from it: made from an
// anchor off the engine thread, which has only to put it in the place of what was there. Replaying the rows takes the
// time, and may fail; then nothing has happened.
//
//   before   |prompt prompt|The  cat  sat  on|        splice [3, 4): "dog"
//   after    |prompt prompt|The  dog  sat  on|        first_changed() = 3: rows before it need not be computed again
//   told      The cat sat                             keeps "The ", takes back "cat sat", tells "dog sat on"
class Revision {
 public:
  // `request` is the anchor's, or what it gives way to (of the same prompt, which counts for nothing here: the rows
  // do). Splices: in order, not overlapping. kInvalidArgument: a splice out of order or range, a token that is not in
  // the vocabulary or ends a generation, one that crosses from the prompt into the completion, a journal without a
  // prompt, a stop string in the completion. kContextLength: longer than `info` has room for. kGrammar: the completion
  // breaks the grammar. Error::detail says where, by the position of the row.
  static Result<Revision> make(const Anchor& before, std::span<const Splice> splices, ValidRequest request,
                               const EngineInfo& info, const Vocabulary& vocabulary, Instant now);

  const Journal& journal() const { return journal_; }
  const Request& request() const { return *request_; }
  // The first row whose token is another one than before, or none; the size of the shorter journal if one continues the
  // other.
  Position first_changed() const { return first_changed_; }
  // Whether any told text is taken back; from which raw byte of the completion on. What stays told may end before that.
  bool takes_text_back() const { return rewind_.n_bytes < n_bytes_told_before_; }
  const RewindEvent& rewind() const { return rewind_; }

 private:
  friend class Generation;
  Revision(const Anchor& before, ValidRequest request, const Vocabulary& vocabulary);
  Result<void> splice(const Anchor& before, std::span<const Splice> splices, const Vocabulary& vocabulary, Instant now);
  void append(const JournalRow& row, const Vocabulary& vocabulary);
  Result<void> fold(const Anchor& before, const EngineInfo& info, const Vocabulary& vocabulary);

  // Of what it was made.
  std::uint64_t version_;
  Position n_rows_before_;
  std::size_t n_bytes_told_before_;
  std::vector<float> logits_;  // still true, if no token changed

  ValidRequest request_;
  Journal journal_;
  Fold fold_;
  Position first_changed_ = 0;
  RewindEvent rewind_;
  std::string text_;  // all that may be told
};

}  // namespace fermata
