#include "invariants.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <variant>

#include "base/limits.h"
#include "random.h"

namespace fermata::sim {
namespace {

bool same_bits(float a, float b) { return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); }
bool runs(State state) { return state == State::kRunning || state == State::kPausing; }

bool in_table(State from, State to) {
  return std::any_of(transitions().begin(), transitions().end(),
                     [&](const Transition& t) { return t.from == from && t.to == to; });
}

std::string figures(std::string_view what, std::size_t is, std::size_t should) {
  return std::string(what) + " is " + std::to_string(is) + ", should be " + std::to_string(should);
}

}  // namespace

std::string Watch::where() const {
  return " (generation " + std::to_string(raw(id_)) + ", event " + std::to_string(n_events_) + ")";
}

const Reference& Watch::reference() {
  if (!reference_) reference_ = run_reference(request_, model_);
  return *reference_;
}

void Watch::on_event(const Event& event) {
  SIM_EXPECT(!finish_, "an event after the end" + where());
  SIM_EXPECT(event.number == n_events_, figures("event number", event.number, n_events_) + where());
  SIM_EXPECT(event.time >= last_event_, "time went backwards" + where());
  ++n_events_;
  last_event_ = event.time;
  if (const auto* text = std::get_if<TextEvent>(&event.content)) on_text(*text);
  if (const auto* state = std::get_if<StateEvent>(&event.content)) on_state(*state, event.time);
  if (const auto* finish = std::get_if<FinishEvent>(&event.content)) on_finish(*finish, event.time);
}

void Watch::on_text(const TextEvent& event) {
  // A pause that is asked for is answered by silence; the last text of a generation that is ended may come from any
  // state, and then its end is next.
  text_ += event.text;
  n_bytes_cut_ = event.n_bytes_cut;
  if (event.rows.empty()) return;
  const auto n_prompt = static_cast<Position>(request_.prompt.size());
  SIM_EXPECT(event.first_position == n_prompt + static_cast<Position>(n_rows_),
             "rows have a gap or come twice" + where());
  for (const JournalRow& row : event.rows) {
    check_row(n_prompt + static_cast<Position>(n_rows_), row);
    check_time(static_cast<Position>(n_rows_), row);
    rows_.push_back(row);
    ++n_rows_;
    last_progress_ = std::max(last_progress_, row.time);
  }
}

void Watch::check_row(Position position, const JournalRow& row) {
  const Reference& expected = reference();
  const auto n_prompt = static_cast<Position>(request_.prompt.size());
  if (position < n_prompt) {
    SIM_EXPECT(row.origin == Origin::kPrompt, where());
    SIM_EXPECT(row.token == request_.prompt[static_cast<std::size_t>(position)], where());
    return;
  }
  const auto i = static_cast<std::size_t>(position - n_prompt);
  SIM_EXPECT(i < expected.tokens.size(), "a token too many" + where());
  const ReferenceToken& should = expected.tokens[i];
  SIM_EXPECT(row.token == should.token, "generated token " + std::to_string(i) + " is " +
                                            std::to_string(raw(row.token)) + ", should be " +
                                            std::to_string(raw(should.token)) + where());
  SIM_EXPECT(row.origin == Origin::kSampled, where());
  SIM_EXPECT(same_bits(row.logprob, should.logprob), "at generated token " + std::to_string(i) + where());
  SIM_EXPECT(same_bits(row.entropy, should.entropy), "at generated token " + std::to_string(i) + where());
  SIM_EXPECT(same_bits(row.margin, should.margin), "at generated token " + std::to_string(i) + where());
}

void Watch::check_time(Position n_before, const JournalRow& row) {
  for (const Frozen& frozen : frozen_) {
    const bool before = n_before < frozen.n_generated;
    SIM_EXPECT(!before || row.time <= frozen.asked, "a token was sampled after its pause was asked for" + where());
    SIM_EXPECT(before || (frozen.resumed && row.time >= *frozen.resumed), "a token was sampled while frozen" + where());
  }
}

void Watch::on_state(const StateEvent& event, Instant now) {
  SIM_EXPECT(in_table(state_, event.state), std::string(to_string(state_)) + " to " +
                                                std::string(to_string(event.state)) + " is not in the table" + where());
  SIM_EXPECT((event.wait_reason == WaitReason::kNone) == (event.state == State::kRunning),
             "a reason to wait, and only then" + where());
  coverage_->transition(state_, event.state);
  coverage_->wait(event.state, event.wait_reason);
  wait_reason_ = event.wait_reason;
  enter(event.state, now);
  if (event.state == State::kPaused) {
    SIM_EXPECT(event.pause.reason == event.wait_reason, where());
    on_pause(event.pause, now);
  }
  if (event.state == State::kRunning)
    for (Frozen& frozen : frozen_)
      if (!frozen.resumed) frozen.resumed = now;
}

void Watch::enter(State state, Instant now) {
  if (!runs(state_) && runs(state)) running_since_ = last_progress_ = now;
  if (runs(state_) && !runs(state)) running_before_ = running_before_ + (now - running_since_);
  state_ = state;
}

void Watch::on_pause(const PauseRecord& record, Instant now) {
  const Position n_generated = record.at - static_cast<Position>(request_.prompt.size());
  SIM_EXPECT(0 <= n_generated && static_cast<std::size_t>(n_generated) <= reference().tokens.size(), where());
  SIM_EXPECT(0 <= record.computed && record.computed <= record.at, where());
  SIM_EXPECT(record.reach >= Duration{}, where());
  if (record.reason == WaitReason::kPauseAt)
    SIM_EXPECT(request_.pause_at == n_generated && record.has_logits, "paused at the wrong token" + where());
  for (const Frozen& before : frozen_) {
    SIM_EXPECT(before.n_generated <= n_generated, "tokens were lost" + where());
    if (!before.resumed)
      SIM_EXPECT(before.n_generated == n_generated, "a token was sampled between two pauses" + where());
  }
  const Instant asked{now.ns - record.reach.ns};
  frozen_.push_back({n_generated, record.computed, record.has_logits, asked, std::nullopt});
  for (std::size_t i = 0; i < n_rows_; ++i)
    SIM_EXPECT(rows_[i].time <= asked, "a token was sampled after its pause was asked for" + where());
  coverage_->count(record.has_logits ? "paused with logits" : "paused without logits");

  const auto k = static_cast<std::size_t>(n_generated);
  check_text(k, false, true);
  const reference::Expected expected = reference().text_after(k, false);
  const std::size_t n_raw = k == 0 ? 0 : reference().bytes_end[k - 1];
  SIM_EXPECT(record.n_bytes_sent == expected.n_bytes_out, where());
  SIM_EXPECT(record.n_bytes_held == n_raw - expected.n_bytes_out, where());
  if (expected.n_held_for_stop > 0) coverage_->count("paused with held text");
}

void Watch::check_text(std::size_t n_generated, bool finished, bool releases) {
  const reference::Expected expected = reference().text_after(n_generated, finished && releases);
  SIM_EXPECT(text_ == expected.text, "after " + std::to_string(n_generated) + " tokens it said '" + text_ +
                                         "', should have said '" + expected.text + "'" + where());
  const std::size_t n_rows = reference().rows_out(n_generated, expected.n_bytes_out, finished);
  SIM_EXPECT(n_rows_ == n_rows, figures("number of rows told", n_rows_, n_rows) + where());
  if (!finished || n_rows == 0) return;
  const std::size_t end = reference().bytes_end[n_rows - 1];
  const std::size_t n_cut = end > expected.n_bytes_out ? end - expected.n_bytes_out : 0;
  SIM_EXPECT(n_bytes_cut_ == n_cut, figures("bytes cut from the last row", n_bytes_cut_, n_cut) + where());
  if (n_cut > 0) coverage_->count("text cut inside a token");
}

void Watch::on_finish(const FinishEvent& finish, Instant now) {
  SIM_EXPECT(in_table(state_, State::kFinished), where());
  coverage_->transition(state_, State::kFinished);
  coverage_->end(finish.reason);
  enter(State::kFinished, now);
  finish_ = finish;
  finished_at_ = now;
  SIM_EXPECT(finish.n_prompt == static_cast<Position>(request_.prompt.size()), where());
  SIM_EXPECT(0 <= finish.n_cached && finish.n_cached <= finish.n_prompt, where());
  SIM_EXPECT(0 <= finish.n_generated && static_cast<std::size_t>(finish.n_generated) <= reference().tokens.size(),
             "a token too many" + where());
  const bool by_itself = finish.reason == EndReason::kStop || finish.reason == EndReason::kLength ||
                         (finish.reason == EndReason::kError && finish.error.code == Code::kGrammar);
  if (by_itself)
    check_natural_end(finish);
  else
    check_cut_short(finish, now);
  check_text(static_cast<std::size_t>(finish.n_generated), true, finish.reason != EndReason::kContentFilter);
  if (request_.timeout)
    SIM_EXPECT(running_before_ <= *request_.timeout + turn_max_, "it outlived its time limit" + where());
}

void Watch::check_natural_end(const FinishEvent& finish) {
  const Reference& expected = reference();
  SIM_EXPECT(finish.reason == expected.end, "ended by " + std::string(to_string(finish.reason)) + ", should by " +
                                                std::string(to_string(expected.end)) + where());
  const auto n_generated = static_cast<std::size_t>(finish.n_generated);
  SIM_EXPECT(n_generated == expected.tokens.size(),
             figures("number of tokens", n_generated, expected.tokens.size()) + where());
  SIM_EXPECT(finish.stop_string == expected.stop_string, where());
  if (finish.reason == EndReason::kError) coverage_->count("error: grammar");
  if (!finish.stop_string.empty()) coverage_->count("stop string matched");
}

void Watch::check_cut_short(const FinishEvent& finish, Instant now) {
  SIM_EXPECT(finish.stop_string.empty(), where());
  if (finish.reason == EndReason::kError) {
    coverage_->count(finish.error.code == Code::kEngine    ? "error: engine"
                     : finish.error.code == Code::kNoCells ? "error: no cells"
                     : finish.error.code == Code::kBusy    ? "refused: too many"
                                                           : "error: other");
    return;
  }
  if (finish.reason != EndReason::kTimeout || finish.error.code != Code::kAborted) return;
  const bool over_limit = request_.timeout && running_before_ >= *request_.timeout;
  const bool no_progress = now - last_progress_ >= milliseconds(limits::kNoProgressTimeoutMs);
  SIM_EXPECT(over_limit || no_progress, "ended by a time limit that was not reached" + where());
}

void Watch::on_inspection(const Inspection& inspection) {
  const Status& status = inspection.status;
  SIM_EXPECT(status.state == State::kPaused || status.state == State::kFinished,
             "inspected while " + std::string(to_string(status.state)) + where());
  const Position n_rows = status.n_prompt + status.n_generated;
  Position position = n_rows - static_cast<Position>(inspection.last_rows.size());
  SIM_EXPECT(position >= 0, where());
  for (const JournalRow& row : inspection.last_rows) check_row(position++, row);
  if (status.state == State::kFinished) return;
  claim_frozen(status.n_generated);
  const auto k = static_cast<std::size_t>(status.n_generated);
  const std::size_t n_raw = k == 0 ? 0 : reference().bytes_end[k - 1];
  SIM_EXPECT(inspection.n_bytes_held == n_raw - reference().text_after(k, false).n_bytes_out, where());
  if (inspection.n_bytes_held > 0) coverage_->count("inspection: text was held");
  if (!inspection.has_logits) {
    SIM_EXPECT(inspection.next.empty(), "tokens that could come without their logits" + where());
    return coverage_->count("inspection: no logits");
  }
  const bool is_told = !frozen_.empty() && !frozen_.back().resumed;  // else its reader lags behind
  if (is_told) coverage_->count(frozen_.back().has_logits ? "inspection: logits were held" : "inspection: took a row");
  SIM_EXPECT(status.computed == n_rows || status.computed == 0, "logits of an uncomputed token" + where());
  if (k >= reference().tokens.size()) return;
  const ReferenceToken& should = reference().tokens[k];
  SIM_EXPECT(same_bits(inspection.next_entropy, should.entropy), where());
  for (const TokenLogprob& next : inspection.next)
    if (next.token == should.token) SIM_EXPECT(same_bits(next.logprob, should.logprob), where());
}

void Watch::check_claims() const {
  SIM_EXPECT(finish_, "it never ended" + where());
  if (ended_by_) SIM_EXPECT(finished_at_ <= *ended_by_, "it was refused as ended, but ended later" + where());
  for (const Position claim : frozen_claims_)
    SIM_EXPECT(std::any_of(frozen_.begin(), frozen_.end(), [&](const Frozen& f) { return f.n_generated == claim; }),
               "an answer says it stood frozen at " + std::to_string(claim) + where());
  for (const auto& [n_generated, computed] : still_claims_)
    SIM_EXPECT(inspected_ || computed == 0 ||
                   std::any_of(frozen_.begin(), frozen_.end(),
                               [&, n = n_generated, c = computed](const Frozen& f) {
                                 return f.n_generated == n && f.computed == c;
                               }),
               "it took part in a step while it was frozen" + where());
}

std::string Watch::held_text() {
  if (frozen_.empty()) return {};
  const auto k = static_cast<std::size_t>(frozen_.back().n_generated);
  return k == 0 ? std::string()
                : reference().raw.substr(reference().text_after(k, false).n_bytes_out,
                                         reference().bytes_end[k - 1] - reference().text_after(k, false).n_bytes_out);
}

}  // namespace fermata::sim
