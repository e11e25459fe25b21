#pragma once

#include <memory>
#include <span>

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
  // `vocabulary` and what `samplers` made must outlive the fold.
  static Result<Fold> make(const ValidRequest& request, const Vocabulary& vocabulary, const SamplerFactory& samplers);
  Fold clone() const;

  // kGrammar (nothing changed) if a generated token breaks the grammar.
  Result<TextStream::Step> push(const JournalRow& row);
  // Pushes all rows; what they release is dropped (it was sent before).
  Result<void> replay(std::span<const JournalRow> rows);
  TextStream::Step finish() { return text_.finish(); }

  const Sampler& sampler() const { return *sampler_; }
  const TextStream& text() const { return text_; }

 private:
  Fold(const Vocabulary& vocabulary, std::unique_ptr<Sampler> sampler, TextStream text);
  const Vocabulary* vocabulary_;
  std::unique_ptr<Sampler> sampler_;
  TextStream text_;
  std::string prompt_tail_;
};

}  // namespace fermata
