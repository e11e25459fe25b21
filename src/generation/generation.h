#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "generation/event.h"
#include "generation/fold.h"
#include "generation/journal.h"
#include "generation/request.h"
#include "generation/state.h"

namespace fermata {

// One run from prompt to end: its state, its journal, and what is folded from it. Pure: it knows no engine, no thread
// and no socket; the loop feeds it logits and takes its events. Owner: the engine thread.
//
//   journal    | prompt prompt prompt | sampled sampled |        wanted = size of the journal
//   computed   |==========================>             .        keys and values in the pool
//
// A step computes wanted tokens; when all are, the logits row of the last one decides the next.
class Generation {
 public:
  static Result<Generation> make(GenerationId id, ValidRequest request, const Vocabulary& vocabulary,
                                 const SamplerFactory& samplers, Instant now);

  GenerationId id() const { return id_; }
  const Request& request() const { return *request_; }
  State state() const { return state_; }
  WaitReason wait_reason() const { return wait_reason_; }
  EndReason end_reason() const { return end_reason_; }
  const Journal& journal() const { return journal_; }
  const Fold& fold() const { return fold_; }

  // --- wanted and computed
  Position wanted() const { return journal_.size(); }
  Position computed() const { return computed_; }
  Position n_cached() const { return n_cached_; }
  // Tokens that a step should compute next: at most n_max of [computed, wanted).
  std::span<const TokenId> next_tokens(Position n_max) const;
  void add_computed(Position n);
  // The first n tokens were found in the pool (at admission).
  void set_cached(Position n);

  // --- the logits row that decides the next token: kept only while nothing may be sampled from it (pausing, paused)
  bool has_logits() const { return !logits_.empty(); }
  std::span<const float> held_logits() const { return logits_; }
  void hold_logits(std::span<const float> logits);  // [n_vocab]
  std::vector<float> take_logits();

  // --- state. kWrongState if the table has no such transition.
  Result<void> apply(Trigger trigger, WaitReason reason, Instant now);
  // When the pause that is under way was asked for; set by kAskPause or by kReachPause itself.
  Instant pause_asked() const { return pause_asked_; }
  // The pause asked for by the request (pause_at) is due before the next token is sampled; true once.
  bool pause_is_due() const;

  // Samples the next token from its logits, journals it and folds it. Precondition: kRunning, computed == wanted.
  // A sampler or grammar that fails ends the generation with kError.
  void choose(std::span<const float> logits, Instant now);

  // Ends it, from any state but kFinished: releases what was held (unless a stop string cut it off) and says the end.
  void finish(EndReason reason, Instant now, Error error = {});

  // Time spent in kRunning, and when its last token (or prompt chunk) came.
  Duration running_time(Instant now) const;
  Instant last_progress() const { return last_progress_; }

  // Events made since the last call, in order.
  std::vector<Event> take_events();

 private:
  Generation(GenerationId id, ValidRequest request, Fold fold, const Vocabulary& vocabulary, Instant now);

  GenerationId id_;
  ValidRequest request_;
  const Vocabulary* vocabulary_;
  Journal journal_;
  Fold fold_;
  State state_ = State::kQueued;
  WaitReason wait_reason_ = WaitReason::kQueue;
  EndReason end_reason_ = EndReason::kNone;
  Position computed_ = 0;
  Position n_cached_ = 0;
  std::vector<float> logits_;
  std::vector<Event> events_;
  std::uint64_t n_events_ = 0;
  Instant pause_asked_;
  Instant last_progress_;
  Instant running_since_;
  Duration running_before_;
};

}  // namespace fermata
