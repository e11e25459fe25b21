#include "generation/generation.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"

namespace fermata {
namespace {
bool counts_as_running(State state) { return state == State::kRunning || state == State::kPausing; }
}  // namespace

Result<Generation> Generation::make(GenerationId id, ValidRequest request, const Vocabulary& vocabulary, Instant now) {
  Fold fold(request, vocabulary);
  Generation generation(id, std::move(request), std::move(fold), vocabulary, now);
  for (const TokenId token : generation.request().prompt) {
    JournalRow row;
    row.token = token;
    row.time = now;
    if (const auto step = generation.fold_.push(row); !step) return step.error();
    generation.journal_.append(row, {});
  }
  generation.n_rows_out_ = generation.journal_.size();
  return generation;
}

Generation Generation::branch(GenerationId id, Revision revision, const Vocabulary& vocabulary, Instant now) {
  Generation generation(id, std::move(revision.request_), std::move(revision.fold_), vocabulary, now);
  generation.journal_ = std::move(revision.journal_);
  generation.logits_ = std::move(revision.logits_);
  generation.n_rows_out_ = generation.journal_.n_prompt();
  generation.emit_text({std::move(revision.text_), false, generation.fold_.text().n_bytes_out()}, false, now);
  return generation;
}

Generation::Generation(GenerationId id, ValidRequest request, Fold fold, const Vocabulary& vocabulary, Instant now)
    : id_(id),
      request_(std::move(request)),
      vocabulary_(&vocabulary),
      fold_(std::move(fold)),
      pause_asked_(now),
      pause_reached_(now),
      last_progress_(now),
      running_since_(now) {}

// --- wanted and computed

std::span<const TokenId> Generation::next_tokens(Position n_max) const {
  FERMATA_CHECK_LE(0, n_max);
  const Position n = std::min(n_max, wanted() - computed_);
  return journal_.tokens().subspan(static_cast<std::size_t>(computed_), static_cast<std::size_t>(n));
}

void Generation::add_computed(Position n, Instant now) {
  FERMATA_CHECK_LE(0, n);
  FERMATA_CHECK_LE(n, wanted() - computed_);
  computed_ += n;
  was_admitted_ = true;
  last_progress_ = now;
}

void Generation::set_cached(Position n) {
  FERMATA_CHECK(computed_ == 0 || n == 0);
  FERMATA_CHECK_LE(0, n);
  FERMATA_CHECK_LE(n, has_logits() ? wanted() : wanted() - 1);
  computed_ = n;
  if (!was_admitted_) n_cached_ = std::min(n, journal_.n_prompt());
  was_admitted_ = true;
}

void Generation::trim_computed(Position n) {
  FERMATA_CHECK_LE(0, n);
  computed_ = std::min(computed_, n);
}

// --- its past

Anchor Generation::anchor() const {
  FERMATA_CHECK(state_ == State::kPaused);
  return {id_, version_, request_, journal_, fold_.text().n_bytes_out(), logits_};
}

Result<void> Generation::revise(Revision revision, Instant now) {
  FERMATA_CHECK(state_ == State::kPaused);
  if (revision.version_ != version_ || revision.n_rows_before_ != wanted())
    return Error{Code::kStale, "it is not what it was when this was prepared; look at it and try again",
                 "version " + std::to_string(version_) + ", " + std::to_string(wanted()) + " tokens", false};
  version_ = revision.rewind_.version;
  request_ = std::move(revision.request_);
  journal_ = std::move(revision.journal_);
  fold_ = std::move(revision.fold_);
  logits_ = std::move(revision.logits_);
  const bool needs_row = logits_.empty();  // of its last token, whatever was computed
  trim_computed(std::min(revision.first_changed_, wanted() - (needs_row ? 1 : 0)));
  n_rows_out_ = revision.rewind_.n_rows;
  std::string told = revision.text_.substr(revision.rewind_.n_text_bytes);
  emit(now, std::move(revision.rewind_));
  emit_text({std::move(told), false, fold_.text().n_bytes_out()}, false, now);
  return {};
}

void Generation::hold_logits(std::span<const float> logits) {
  FERMATA_CHECK(state_ != State::kFinished);
  FERMATA_CHECK_EQ(computed_, wanted());
  FERMATA_CHECK_EQ(logits.size(), static_cast<std::size_t>(vocabulary_->n_tokens()));
  logits_.assign(logits.begin(), logits.end());
}

std::vector<float> Generation::take_logits() { return std::exchange(logits_, {}); }

// --- state

Result<void> Generation::apply(Trigger trigger, WaitReason reason, Instant now) {
  FERMATA_CHECK(trigger != Trigger::kFinish);
  const auto next = next_state(state_, trigger);
  if (!next)
    return Error{Code::kWrongState, "the generation is " + std::string(to_string(state_)),
                 std::string(to_string(trigger)) + " is not possible in this state"};
  if (trigger == Trigger::kAskPause && !pause_asked_is_noted_) note_pause_asked(now);
  if (trigger == Trigger::kReachPause) {
    if (!pause_asked_is_noted_) note_pause_asked(now);
    pause_asked_is_noted_ = false;
    pause_reached_ = now;
  }
  if (*next == State::kRunning) {
    wait_reason_ = WaitReason::kNone;
  } else if (reason != WaitReason::kNone) {
    wait_reason_ = reason;
  }
  if (trigger == Trigger::kReachPause && pause_is_due() && needs_resume(wait_reason_)) pause_at_is_past_ = true;
  enter(*next, now);
  emit(now, StateEvent{state_, wait_reason_, state_ == State::kPaused ? pause_record() : PauseRecord{}});
  return {};
}

void Generation::note_pause_asked(Instant asked) {
  pause_asked_ = asked;
  pause_asked_is_noted_ = true;
}

void Generation::enter(State state, Instant now) {
  if (counts_as_running(state_) && !counts_as_running(state)) running_before_ = running_time(now);
  if (!counts_as_running(state_) && counts_as_running(state)) running_since_ = last_progress_ = now;
  if (state == State::kRunning && computed_ < wanted()) logits_ = {};
  if (state == State::kPaused) ++n_pauses_;
  state_ = state;
}

PauseRecord Generation::pause_record() const {
  return {.at = wanted(),
          .computed = computed_,
          .n_bytes_sent = fold_.text().n_bytes_out(),
          .n_bytes_held = fold_.text().n_bytes_held(),
          .ordinal = n_pauses_ == 0 ? 0 : n_pauses_ - 1,
          .reason = wait_reason_,
          .reach = pause_reached_ - pause_asked_,
          .has_logits = has_logits()};
}

bool Generation::pause_is_due() const {
  return request_->pause_at.has_value() && !pause_at_is_past_ && counts_as_running(state_) && computed_ == wanted() &&
         journal_.n_generated() == *request_->pause_at;
}

Duration Generation::running_time(Instant now) const {
  return counts_as_running(state_) ? running_before_ + (now - running_since_) : running_before_;
}

// --- tokens and the end

void Generation::choose(std::span<const float> logits, Instant now) {
  FERMATA_CHECK(state_ == State::kRunning);
  FERMATA_CHECK_EQ(computed_, wanted());
  FERMATA_CHECK(logits_.empty());
  if (n_tokens_left() == 0) return finish(EndReason::kLength, now);
  const auto choice = fold_.sampler().sample(logits, wanted());
  if (!choice) return finish(EndReason::kError, now, choice.error());
  FERMATA_CHECK(vocabulary_->contains(choice->token));
  JournalRow row{.token = choice->token,
                 .role = TokenRole::kGenerated,
                 .origin = Origin::kSampled,
                 .logprob = choice->logprob,
                 .entropy = choice->entropy,
                 .margin = choice->margin,
                 .carry = choice->carry,
                 .time = now};
  if (request_->n_top_logprobs > 0)
    row.top = log_softmax_top(logits, static_cast<std::size_t>(request_->n_top_logprobs));
  auto step = fold_.push(row);
  if (!step) return finish(EndReason::kError, now, step.error());
  journal_.append(row, text_bytes(*vocabulary_, row.token));
  last_progress_ = now;
  const bool stopped = step->stopped;
  emit_text(std::move(*step), stopped, now);
  if (stopped || vocabulary_->ends_generation(row.token)) return finish(EndReason::kStop, now);
  if (n_tokens_left() == 0) finish(EndReason::kLength, now);
}

void Generation::finish(EndReason reason, Instant now, Error error) {
  FERMATA_CHECK(state_ != State::kFinished);
  FERMATA_CHECK(reason != EndReason::kNone);
  FERMATA_CHECK(next_state(state_, Trigger::kFinish) == State::kFinished);
  // What a filter stopped stays in; rows whose text began to go out are told of all the same.
  const bool releases = reason != EndReason::kContentFilter;
  emit_text(releases ? fold_.finish() : TextStream::Step{{}, false, fold_.text().n_bytes_out()}, true, now);
  enter(State::kFinished, now);
  wait_reason_ = WaitReason::kNone;
  end_reason_ = reason;
  logits_ = {};
  emit(now, FinishEvent{.reason = reason,
                        .error = std::move(error),
                        .n_prompt = journal_.n_prompt(),
                        .n_cached = n_cached_,
                        .n_generated = journal_.n_generated(),
                        .stop_string = std::string(fold_.text().stop_string())});
}

void Generation::emit_text(TextStream::Step step, bool is_end, Instant now) {
  TextEvent event;
  event.text = std::move(step.released);
  event.first_position = n_rows_out_;
  for (; n_rows_out_ < journal_.size(); ++n_rows_out_) {
    const JournalRow& row = journal_[n_rows_out_];
    const std::size_t end = journal_.bytes_end(n_rows_out_);
    const bool is_whole = end <= step.n_bytes_out;
    const bool is_cut = is_end && journal_.bytes_begin(n_rows_out_) < step.n_bytes_out;
    const bool is_end_token = row.role == TokenRole::kGenerated && vocabulary_->ends_generation(row.token);
    if (!(is_whole || is_cut) || is_end_token) break;
    event.rows.push_back(row);
    if (!is_whole) event.n_bytes_cut = end - step.n_bytes_out;
  }
  if (!event.text.empty() || !event.rows.empty()) emit(now, std::move(event));
}

void Generation::emit(Instant now, std::variant<TextEvent, StateEvent, RewindEvent, FinishEvent> content) {
  FERMATA_CHECK(end_reason_ == EndReason::kNone || std::holds_alternative<FinishEvent>(content));
  events_.push_back(Event{n_events_++, now, std::move(content)});
}

std::vector<Event> Generation::take_events() { return std::exchange(events_, {}); }

}  // namespace fermata
