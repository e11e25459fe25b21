#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/sampling/sampler.h"
#include "engine/vocabulary.h"
#include "generation/journal.h"
#include "generation/request.h"
#include "generation/text_stream.h"

namespace fermata {

// Everything that is derived from the tokens: sampler windows, grammar position, hold-back, UTF-8 remainder. There is
// one way to get it — push the journal's rows one by one — for resume, fork, edit, rewind and restore alike, so it
// cannot disagree with the journal.
class Fold {
 public:
  // `vocabulary` must outlive the fold.
  Fold(const ValidRequest& request, const Vocabulary& vocabulary);
  Fold clone() const;

  // The next row of the journal. kGrammar (nothing changed) if a generated token breaks the grammar. A row of the
  // prompt, also one within the completion, releases nothing. After a stop string nothing may be pushed.
  Result<TextStream::Step> push(const JournalRow& row);
  // Pushes rows one by one; what they release is dropped (it was sent before). Ends at the first that fails.
  Result<void> replay(std::span<const JournalRow> rows);
  // The true end: releases what a stop string could still have taken back.
  TextStream::Step finish() { return text_.finish(); }

  const Sampler& sampler() const { return *sampler_; }
  const TextStream& text() const { return text_; }

 private:
  Fold(const Vocabulary& vocabulary, std::unique_ptr<Sampler> sampler, TextStream text);
  void push_prompt(TokenId token);

  const Vocabulary* vocabulary_;
  std::unique_ptr<Sampler> sampler_;
  TextStream text_;
  std::string prompt_tail_;  // up to 4 bytes, for a character that is split between prompt and completion
  bool in_completion_ = false;
};

// The bytes that a token adds to the text. Control tokens and those that end a generation add none.
std::string_view text_bytes(const Vocabulary& vocabulary, TokenId token);

}  // namespace fermata
