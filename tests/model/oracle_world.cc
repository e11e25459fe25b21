#include "oracle_world.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/check.h"
#include "generation/request.h"

namespace fermata::oracle {
namespace {

const char* const kGrammars[] = {
    "root ::= [a-z ]+",
    "root ::= \"[\" item (\", \" item)* \"]\"\nitem ::= [0-9]+ | \"\\\"\" [a-z]* \"\\\"\"",
    "root ::= (\"yes\" | \"no\" | \"maybe\") (\" \" root)?",
};
const char* const kStops[] = {"e", "th", "\n", " the ", ", ", "ing", ".\n", "zq"};

const char* const kText =
    "The keeper climbed the stairs of the lighthouse every evening, and every evening the fox sat on the rock below "
    "and "
    "watched the lamp being lit. In winter the sea threw stones at the door; in summer it brought driftwood, bottles "
    "and "
    "once a violin. He wrote all of it down in a book with a blue cover: the wind, the ships, the price of oil, and on "
    "the margin, in small letters, what the fox had done that day. ";

}  // namespace

OracleWorld::OracleWorld(Engine& engine, PlainLoop& reference, OracleOptions options)
    : options_(options),
      random_(options.seed),
      samplers_(make_recording_samplers(engine.samplers(), records_)),
      plain_samplers_(engine.samplers()),
      engine_(engine, *samplers_),
      reference_(reference),
      loop_(engine_, clock_) {
  std::string text;
  while (static_cast<std::int32_t>(text.size()) < options_.n_prompt_max * 6) text += kText;
  const std::vector<TokenId> tokens = engine.vocabulary().tokenize(text, Markers::kPlain);
  for (int i = 0; i < 4; ++i) {
    const std::size_t from = static_cast<std::size_t>(number(0, 200));
    openings_.emplace_back(tokens.begin() + static_cast<std::ptrdiff_t>(from), tokens.end());
  }
}

SamplingParams OracleWorld::random_sampling() {
  SamplingParams p;
  p.seed = (options_.seed << 32) + next_id_;
  p.temperature = chance(0.15) ? 0.0f : static_cast<float>(number(4, 14)) / 10;
  if (chance(0.3)) p.top_k = static_cast<std::int32_t>(number(0, 100));
  if (chance(0.3)) p.top_p = static_cast<float>(number(5, 10)) / 10;
  if (chance(0.2)) p.min_p = 0;
  if (chance(0.1)) p.typical_p = 0.9f;
  if (chance(0.1)) p.top_n_sigma = 2;
  if (chance(0.1)) p.dynatemp_range = 0.3f;
  if (chance(0.3)) p.repeat_penalty = 1.3f;
  if (chance(0.2)) p.frequency_penalty = 0.4f;
  if (chance(0.2)) p.presence_penalty = 0.3f;
  if (chance(0.2)) p.repeat_last_n = -1;
  if (chance(0.2)) p.dry_multiplier = 0.8f;
  if (chance(0.1)) p.xtc_probability = 0.5f;
  if (chance(0.15)) p.mirostat = static_cast<std::int32_t>(number(1, 2));
  if (p.mirostat == 0 && chance(0.1)) p.adaptive_target = 0.4f;
  if (p.mirostat != 0 || p.temperature == 0) p.dynatemp_range = 0;  // refused together
  if (chance(0.2)) p.logit_bias.push_back({TokenId{static_cast<std::int32_t>(number(0, 500))}, 3.0f});
  if (chance(0.3)) p.ignore_eos = true;
  if (options_.with_grammars && !p.ignore_eos && chance(0.2)) p.grammar = kGrammars[number(0, 2)];
  return p;
}

Request OracleWorld::random_request() {
  Request request;
  const std::vector<TokenId>& opening = openings_[static_cast<std::size_t>(number(0, 3))];
  const std::int64_t longest = std::min<std::int64_t>(options_.n_prompt_max, static_cast<std::int64_t>(opening.size()));
  const std::int64_t n = chance(0.7) ? number(1, std::max<std::int64_t>(longest / 8, 1)) : number(1, longest);
  request.prompt.assign(opening.begin(), opening.begin() + n);
  for (std::int64_t i = number(0, 3); i > 0; --i)
    request.prompt.push_back(opening[static_cast<std::size_t>(number(0, longest - 1))]);
  request.sampling = random_sampling();
  request.n_tokens_max = static_cast<std::int32_t>(number(1, options_.n_tokens_max));
  for (std::int64_t i = chance(0.3) ? number(1, 3) : 0; i > 0; --i) request.stop.push_back(kStops[number(0, 7)]);
  if (chance(0.3)) request.pause_at = static_cast<std::int32_t>(number(0, request.n_tokens_max));
  request.priority = static_cast<std::int32_t>(number(0, 2));
  return request;
}

void OracleWorld::submit() {
  const GenerationId id{next_id_};
  Run run;
  run.request = random_request();
  if (!run.request.sampling.grammar.empty()) ++counts_.n_with_grammar;
  ++next_id_;
  Result<ValidRequest> valid = validate(run.request, engine_.info(), engine_.vocabulary(), engine_.samplers());
  if (!valid) {
    difference_ = "a request was refused: " + valid.error().message + " " + valid.error().detail;
    return;
  }
  Result<Generation> generation = Generation::make(id, *std::move(valid), engine_.vocabulary(), clock_.now());
  FERMATA_CHECK(generation.has_value());
  run.events = std::make_shared<EventRing>(limits::kEventRingMax);
  FERMATA_CHECK(
      loop_.post({clock_.now(), Submit{std::make_unique<Generation>(*std::move(generation)), run.events}}).has_value());
  live_.emplace(id, std::move(run));
}

GenerationId OracleWorld::any_live() {
  auto place = live_.begin();
  std::advance(place, number(0, static_cast<std::int64_t>(live_.size()) - 1));
  return place->first;
}

void OracleWorld::pause(GenerationId id, bool in_step) {
  ++counts_.n_pauses;
  if (in_step) ++counts_.n_pauses_in_step;
  FERMATA_CHECK(loop_.post({clock_.now(), Pause{id, Reply<PauseRecord>()}}).has_value());
}

void OracleWorld::act(GenerationId id) {
  if (chance(0.025)) {
    FERMATA_CHECK(loop_.post({clock_.now(), Cancel{id, EndReason::kCancelled, Reply<Status>()}}).has_value());
  } else if (live_.at(id).paused && chance(0.6)) {
    if (chance(0.3)) {
      ++counts_.n_inspections;
      FERMATA_CHECK(loop_.post({clock_.now(), Inspect{id, 4, 5, Reply<Inspection>()}}).has_value());
    }
    if (options_.with_changes && chance(0.5)) begin_change(id);
    if (chance(0.5)) FERMATA_CHECK(loop_.post({clock_.now(), Resume{id, Reply<Status>(), {}}}).has_value());
  } else if (chance(0.4)) {
    pause(id, false);
  }
}

void OracleWorld::begin_change(GenerationId id) {
  Change change;
  change.id = id;
  change.is_branch = chance(0.3);
  FERMATA_CHECK(loop_.post({clock_.now(), TakeAnchor{id, change.anchor}}).has_value());
  changes_.push_back(std::move(change));
}

std::vector<Splice> OracleWorld::random_splices(const Journal& journal) {
  std::vector<Splice> splices;
  Position from = 0;
  for (std::int64_t n = number(0, 2); n > 0; --n) {
    Splice splice;
    const bool in_prompt = chance(0.15);
    const Position lowest = std::max(from, in_prompt ? 1 : journal.n_prompt());
    const Position highest = in_prompt ? journal.n_prompt() : journal.size();
    if (lowest > highest) continue;
    splice.begin = static_cast<Position>(number(lowest, highest));
    const bool cuts = !in_prompt && chance(0.2);
    splice.end = cuts ? highest : static_cast<Position>(number(splice.begin, std::min(highest, splice.begin + 3)));
    const bool is_note = !in_prompt && chance(0.15);
    if (in_prompt || is_note) splice.role = TokenRole::kPrompt;
    for (std::int64_t k = number(0, 4); k > 0; --k)
      splice.tokens.push_back(openings_[0][static_cast<std::size_t>(number(0, 200))]);
    counts_.n_edited_prompts += in_prompt ? 1 : 0;
    counts_.n_notes += is_note ? 1 : 0;
    from = splice.end;
    splices.push_back(std::move(splice));
  }
  return splices;
}

void OracleWorld::branch(Revision revision, const Change& change) {
  const GenerationId id{next_id_++};
  Run run;
  run.request = change.request;
  run.given = change.given;
  run.events = std::make_shared<EventRing>(limits::kEventRingMax);
  auto generation =
      std::make_unique<Generation>(Generation::branch(id, std::move(revision), engine_.vocabulary(), clock_.now()));
  FERMATA_CHECK(loop_.post({clock_.now(), Submit{std::move(generation), run.events, chance(0.3)}}).has_value());
  ++counts_.n_branches;
  live_.emplace(id, std::move(run));
}

bool OracleWorld::go_on_with(Change& change) {
  if (change.revised) {
    const auto revised = change.revised->poll();
    if (!revised) return false;
    if (!*revised) {
      ++counts_.n_revised_stale;
      return true;
    }
    ++counts_.n_revised;
    const auto run = live_.find(change.id);
    if (run == live_.end()) return true;
    run->second.request = change.request;
    run->second.given = change.given;
    records_.forget(change.request.sampling.seed);  // rows that were sampled from before
    return true;
  }
  const auto anchor = change.anchor.poll();
  if (!anchor) return false;
  if (!*anchor) return true;
  std::optional<ValidRequest> other;
  if (change.is_branch || chance(0.2)) {
    Request request = *(*anchor)->request;
    if (change.is_branch) {
      request.sampling.seed = (options_.seed << 32) + next_id_;
      request.pause_at.reset();
    }
    if (chance(0.5)) {
      request.sampling.temperature = static_cast<float>(number(1, 14)) / 10;
      request.sampling.repeat_penalty = 1.2f;
      request.sampling.mirostat = 0;
      ++counts_.n_other_sampling;
    }
    Result<ValidRequest> valid = validate(request, engine_.info(), engine_.vocabulary(), engine_.samplers());
    FERMATA_CHECK(valid.has_value());
    other = *std::move(valid);
  }
  Result<Revision> revision =
      Revision::make(**anchor, random_splices((*anchor)->journal), other ? *other : (*anchor)->request, engine_.info(),
                     engine_.vocabulary(), clock_.now());
  if (!revision) {
    ++counts_.n_revisions_refused;
    return true;
  }
  change.request = revision->request();
  const auto rows = revision->journal().rows().subspan(static_cast<std::size_t>(revision->journal().n_prompt()));
  change.given.assign(rows.begin(), rows.end());
  if (change.is_branch) {
    branch(*std::move(revision), change);
    return true;
  }
  change.revised.emplace();
  FERMATA_CHECK(
      loop_.post({clock_.now(), Revise{change.id, std::make_unique<Revision>(*std::move(revision)), *change.revised}})
          .has_value());
  return false;
}

void OracleWorld::go_on_with_changes() {
  std::erase_if(changes_, [this](Change& change) { return go_on_with(change); });
}

// Something happens in the middle of the next step, from whichever thread asks at that moment.
void OracleWorld::disturb() {
  const GenerationId id = any_live();
  const bool cancels = chance(0.1);
  engine_.disturb_next_step(static_cast<std::int32_t>(number(0, 60)), [this, id, cancels] {
    if (cancels)
      (void)loop_.post({clock_.now(), Cancel{id, EndReason::kCancelled, Reply<Status>()}});
    else
      pause(id, true);
  });
}

void OracleWorld::drain() {
  for (auto place = live_.begin(); place != live_.end();) {
    Run& run = place->second;
    while (const std::optional<Event> event = run.events->try_pop()) {
      if (const auto* text = std::get_if<TextEvent>(&event->content)) {
        for (const JournalRow& row : text->rows) run.sent.push_back(row.token);
      } else if (const auto* state = std::get_if<StateEvent>(&event->content)) {
        run.paused = state->state == State::kPaused && state->wait_reason != WaitReason::kPreempted;
        if (run.paused && state->pause.has_logits) ++counts_.n_pauses_with_logits;
        const auto n_prompt = static_cast<Position>(run.request.prompt.size());
        if (run.paused && state->pause.computed > 0 && state->pause.computed < n_prompt) ++counts_.n_pauses_in_prefill;
      } else if (const auto* rewind = std::get_if<RewindEvent>(&event->content)) {
        run.sent.resize(static_cast<std::size_t>(rewind->n_rows - rewind->n_prompt));
      } else {
        run.end = std::get<FinishEvent>(event->content);
        run.finished = true;
      }
    }
    if (!run.finished) {
      ++place;
      continue;
    }
    if (difference_.empty()) difference_ = compare(place->first, run);
    place = live_.erase(place);
  }
}

std::string OracleWorld::compare(GenerationId id, const Run& run) {
  const Expected expected = reference_.run(run.request, run.given, plain_samplers_);
  std::ostringstream said;
  said << id << " of seed " << options_.seed << " (ended: " << to_string(run.end.reason) << ", prompt "
       << run.request.prompt.size() << " tokens): ";
  const bool complete = run.end.reason == EndReason::kStop || run.end.reason == EndReason::kLength;
  if (run.end.reason == EndReason::kError) {
    said << run.end.error.message << " " << run.end.error.detail;
    return said.str();
  }
  if (complete && run.end.n_generated != expected.n_generated) {
    said << run.end.n_generated << " tokens instead of " << expected.n_generated;
    return said.str();
  }
  for (std::size_t i = 0; i < run.sent.size(); ++i)
    if (i >= expected.tokens.size() || run.sent[i] != expected.tokens[i]) {
      said << "generated token " << i << " differs";
      return said.str();
    }
  const auto n_prompt = static_cast<Position>(run.request.prompt.size());
  for (const auto& [position, hash] : records_.of(run.request.sampling.seed)) {
    if (position < n_prompt + static_cast<Position>(run.given.size())) continue;  // before its last edit
    const auto i = static_cast<std::size_t>(position - n_prompt);
    ++counts_.n_rows;
    if (i < expected.row_hashes.size() && hash == expected.row_hashes[i]) continue;
    said << "the logits row of generated token " << i << " differs";
    return said.str();
  }
  records_.forget(run.request.sampling.seed);
  ++counts_.n_compared;
  if (run.end.reason == EndReason::kCancelled) ++counts_.n_cancelled;
  if (n_prompt + run.end.n_generated > 512) ++counts_.n_past_512;
  if (!run.end.stop_string.empty()) ++counts_.n_stopped_by_string;
  return {};
}

std::string OracleWorld::run() {
  std::int32_t n_started = 0;
  while (difference_.empty() && (n_started < options_.n_runs || !live_.empty())) {
    while (n_started < options_.n_runs && static_cast<std::int32_t>(live_.size()) < options_.n_live_max &&
           (live_.empty() || chance(0.5))) {
      submit();
      ++n_started;
    }
    if (!live_.empty() && chance(0.3)) act(any_live());
    if (!live_.empty() && chance(0.15)) disturb();
    loop_.turn();
    if (chance(0.02)) loop_.audit();
    go_on_with_changes();
    drain();
  }
  loop_.audit();
  return difference_;
}

void OracleWorld::release_pool() {
  for (std::int32_t i = 0; i < engine_.ledger().n_seqs(); ++i)
    if (engine_.ledger().length(SeqId{i}) > 0) engine_.trim(SeqId{i}, 0);
}

}  // namespace fermata::oracle
