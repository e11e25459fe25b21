#pragma once

#include <span>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "generation/event.h"
#include "generation/fold.h"
#include "generation/journal.h"
#include "generation/request.h"
#include "generation/revision.h"
#include "generation/state.h"

namespace fermata {

// One run from prompt to end: its state, its journal, and what is folded from it. Pure: it knows no engine, no thread
// and no socket; the loop feeds it logits and takes its events. Owner: the engine thread.
//
//   journal    | prompt prompt prompt | sampled sampled |        wanted = size of the journal
//   computed   |==========================>             .        keys and values in the pool
//
// A step computes wanted tokens; when all are, the logits row of the last one decides the next: a pause that was asked
// for or is due freezes the generation with that row, else choose() takes it.
class Generation {
 public:
  static Result<Generation> make(GenerationId id, ValidRequest request, const Vocabulary& vocabulary, Instant now);

  // What a revision of an anchor is, as a generation of its own: the same tokens, none of them computed, all of them to
  // be told. Its randomness is that of the revision's request.
  static Generation branch(GenerationId id, Revision revision, const Vocabulary& vocabulary, Instant now);

  GenerationId id() const { return id_; }
  const Request& request() const { return *request_; }
  const ValidRequest& valid_request() const { return request_; }
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
  void add_computed(Position n, Instant now);
  // The first n tokens were found in the pool: at admission, when nothing else of it is there. n_cached() is what the
  // first admission found. 0 also says that its cells are gone.
  // The last token must be computed again for its logits row, if that is not held: n < wanted.
  void set_cached(Position n);
  // Its keys and values from position n on are no longer in the pool.
  void trim_computed(Position n);

  // --- its past. Of a frozen one (kPaused); a revision or a branch is made from the anchor, on any thread.
  std::uint64_t version() const { return version_; }  // of the journal, from 1
  Anchor anchor() const;
  // kStale (nothing changed) if it is not the point that the revision was made of. What it has computed before the
  // first changed row stays. Told by a RewindEvent.
  Result<void> revise(Revision revision, Instant now);

  // --- the logits row that decides the next token: kept only while nothing may be sampled from it (pausing, paused)
  bool has_logits() const { return !logits_.empty(); }
  std::span<const float> held_logits() const { return logits_; }
  // Precondition: computed == wanted. To be called before kReachPause, so that its event tells of the row. The row
  // stays true, and is kept, when the cells are given away meanwhile; if they are not back when the generation runs
  // again, it is dropped, and comes again with the last of them.
  void hold_logits(std::span<const float> logits);  // [n_vocab]
  std::vector<float> take_logits();

  // --- state. kWrongState if the table has no such transition; then nothing changes. kFinish is finish()'s.
  // kNone as reason: reaching a pause, requeueing or restoring keeps the reason it had.
  Result<void> apply(Trigger trigger, WaitReason reason, Instant now);
  // When the pause that is under way was asked for: what note_pause_asked() said of it (the moment of the call, a
  // little before its trigger), else when kAskPause came, else kReachPause itself.
  Instant pause_asked() const { return pause_asked_; }
  void note_pause_asked(Instant asked);
  // Of the pause it is in or was in last.
  PauseRecord pause_record() const;
  // The pause asked for by the request (pause_at) is due: every token is computed, pause_at tokens are generated, and
  // none was paused for at this point by who must resume it. So true once; a resume goes past it.
  bool pause_is_due() const;

  // Journal rows before this one went out, or never will (the prompt); those from here on are held back.
  Position n_rows_out() const { return n_rows_out_; }
  Position n_tokens_left() const { return request_->n_tokens_max - journal_.n_generated(); }

  // Samples the next token from its logits [n_vocab], journals it and folds it; ends the generation with kStop or
  // kLength if that was its last. If no token was asked for (n_tokens_max = 0) it only ends it, with kLength.
  // Preconditions: kRunning, computed == wanted, no held logits. A sampler or grammar that fails ends the generation
  // with kError.
  void choose(std::span<const float> logits, Instant now);

  // Ends it, from any state but kFinished: releases what was held (unless a stop string or a content filter cut it off)
  // and says the end. The FinishEvent is its last event.
  void finish(EndReason reason, Instant now, Error error = {});

  // Time spent in kRunning and kPausing. When it last got on: a token, a prompt chunk, or the beginning of running.
  Duration running_time(Instant now) const;
  Instant last_progress() const { return last_progress_; }

  // Events made since the last call, in order.
  std::vector<Event> take_events();

 private:
  Generation(GenerationId id, ValidRequest request, Fold fold, const Vocabulary& vocabulary, Instant now);

  void enter(State state, Instant now);
  void emit(Instant now, std::variant<TextEvent, StateEvent, RewindEvent, FinishEvent> content);
  // What `step` released, with the rows that became whole; at the end (of the text) also the one that was cut.
  void emit_text(TextStream::Step step, bool is_end, Instant now);

  GenerationId id_;
  ValidRequest request_;
  const Vocabulary* vocabulary_;
  Journal journal_;
  Fold fold_;
  std::uint64_t version_ = 1;
  State state_ = State::kQueued;
  WaitReason wait_reason_ = WaitReason::kQueue;
  EndReason end_reason_ = EndReason::kNone;
  Position computed_ = 0;
  Position n_cached_ = 0;
  bool was_admitted_ = false;
  std::uint32_t n_pauses_ = 0;
  bool pause_at_is_past_ = false;
  Position n_rows_out_ = 0;  // rows before this one went out, or never will (the prompt)
  std::vector<float> logits_;
  std::vector<Event> events_;
  std::uint64_t n_events_ = 0;
  bool pause_asked_is_noted_ = false;
  Instant pause_asked_;
  Instant pause_reached_;
  Instant last_progress_;
  Instant running_since_;  // while kRunning or kPausing
  Duration running_before_;
};

}  // namespace fermata
