#include "runtime/engine_loop.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/limits.h"

namespace fermata {

namespace {

// No step may have more rows than the engine takes.
LoopOptions fitted(LoopOptions options, const EngineInfo& info) {
  for (std::int32_t* n_rows :
       {&options.plan.n_decode_rows, &options.plan.n_prefill_rows, &options.plan.n_prefill_rows_shared})
    *n_rows = std::clamp(*n_rows, 1, info.n_rows_max);
  options.plan.n_decode_rows = std::min(options.plan.n_decode_rows, limits::kDecodeRowsMax);
  return options;
}

}  // namespace

EngineLoop::EngineLoop(Engine& engine, const Clock& clock, LoopOptions options)
    : engine_(engine),
      clock_(clock),
      options_(fitted(options, engine.info())),
      mailbox_(limits::kControlCallsMax, limits::kWorkCallsMax),
      pool_(engine),
      pager_(engine, options.n_page_tokens) {}

bool EngineLoop::turn() {
  take_commands();
  apply_timeouts();
  sample_resumed();
  page_out();

  const Plan plan = plan_turn();
  if (plan.out_of_cells) on_out_of_cells(*roster_.find(*plan.out_of_cells));
  apply_pool_changes(plan);
  if (!plan.decode.empty()) step_decode(plan.decode);
  roster_.deliver();  // tokens do not wait for a neighbour's prompt
  if (plan.page_in) page_in(*plan.page_in);
  if (!plan.prefill.empty()) step_prefill(plan.prefill);
  roster_.deliver();
  look_at_pool();
  return !plan.idle() || plan.out_of_cells || somebody_leaves();
}

void EngineLoop::run() {
  constexpr Duration kNap = milliseconds(200);            // time limits of sleeping generations are looked at so often
  constexpr Duration kNapBesideReader = milliseconds(2);  // a slow reader says nothing when it has read
  while (!closing_.load(std::memory_order_acquire)) {
    if (turn()) continue;
    bool reader_is_slow = false;
    roster_.for_each([&](const Live& live) { reader_is_slow = reader_is_slow || live.reader_is_slow(); });
    interrupts_.begin_commands();
    handle_commands(mailbox_.wait_and_take_all(reader_is_slow ? kNapBesideReader : kNap));
  }
  take_commands();
  roster_.for_each([this](Live& live) {
    if (!live.is(State::kFinished)) end(live, EndReason::kShutdown);
  });
  roster_.deliver();
  roster_.for_each([](Live& live) { live.events->close(); });  // of readers that were too slow to hear the end
}

void EngineLoop::close() {
  mailbox_.close();  // first: what was taken in is then there when run() looks for the last time
  closing_.store(true, std::memory_order_release);
}

// ---------------------------------------------------------------------------------------------------- plan and apply

std::vector<GenerationView> EngineLoop::views() {
  std::vector<GenerationView> views;
  views.reserve(roster_.size());
  roster_.for_each([&](Live& live) {
    GenerationView view;
    view.id = live.generation->id();
    view.queued = live.waits_for_room();
    view.running = live.may_step() || live.is(State::kRestoring);
    if (!view.queued && !view.running) return;
    view.wanted = live.generation->wanted();
    view.computed = live.generation->computed();
    if (live.is(State::kRestoring)) {
      view.n_outside = live.pages.n_tokens();
      view.n_page_rows = live.pages.top().end - live.pages.begin();
    }
    view.n_room_min = view.wanted + std::min(live.generation->n_tokens_left(), Position{1});
    view.priority = live.generation->request().priority;
    view.arrival = live.arrival;
    view.last_planned = live.last_planned;
    views.push_back(view);
  });
  look_up_next(views);
  return views;
}

// Who is next to be admitted may find much of its prompt in the pool; looking that up for all would cost too much.
void EngineLoop::look_up_next(std::vector<GenerationView>& views) {
  GenerationView* next = nullptr;
  for (GenerationView& view : views)
    if (view.queued && (!next || admitted_before(view, *next, options_.plan, clock_.now()))) next = &view;
  if (!next || next->wanted >= engine_.info().n_cells) return;  // who needs every cell has nothing kept for it
  const Live& live = *roster_.find(next->id);
  const Generation& generation = *live.generation;
  const Pool::Known known = pool_.known(generation.journal().tokens(), clock_.now(), generation.request().prefix_group,
                                        generation.has_logits());
  next->n_room_min -= known.n_tokens;
  next->source = known.cached_source;
}

Plan EngineLoop::plan_turn() {
  const std::vector<GenerationView> generations = views();
  std::uint32_t n_needed = 0;
  for (const GenerationView& view : generations)
    n_needed +=
        static_cast<std::uint32_t>(view.queued ? view.n_room_min : view.wanted - view.computed + view.n_outside + 1);
  std::uint32_t n_pinned = 0;
  roster_.for_each([&](const Live& live) {
    if (live.is(State::kPaused)) n_pinned += static_cast<std::uint32_t>(live.n_in_pool());
  });
  const std::vector<CachedView> cached = pool_.cached(n_needed > pool_.n_free());
  PlanLimits plan_limits = options_.plan;
  // The next step cannot be aborted: a short one, so that the next interrupt need not wait long for it.
  if (last_step_aborted_)
    for (std::int32_t* n_rows : {&plan_limits.n_prefill_rows, &plan_limits.n_prefill_rows_shared})
      *n_rows = std::min(*n_rows, limits::kPrefillRowsUnaborted);
  Plan plan = make_plan(generations, pool_.view(cached, n_pinned), plan_limits, clock_.now());

  // A generation that stands still keeps its cells until somebody lacks them; then it gives them up before one that
  // gets on does. While one leaves, nobody else must.
  const bool somebody_lacks_room =
      !plan.preempt.empty() || plan.out_of_cells || plan.wants_parking || (plan.idle() && !generations.empty());
  if (somebody_lacks_room && (somebody_leaves() || park_one())) {
    plan.preempt.clear();
    plan.out_of_cells.reset();
  }
  return plan;
}

void EngineLoop::apply_pool_changes(const Plan& plan) {
  for (const SeqId seq : plan.evict) pool_.evict(seq);
  stats_.n_evictions.store(pool_.n_evictions(), std::memory_order_relaxed);

  for (const GenerationId id : plan.preempt) {
    give_way(*roster_.find(id));
    stats_.n_preempted.fetch_add(1, std::memory_order_relaxed);
  }

  for (const GenerationId id : plan.admit) {
    Live& live = *roster_.find(id);
    const Generation& generation = *live.generation;
    const Result<Pool::Admission> admission = pool_.admit(generation.journal().tokens(), clock_.now(),
                                                          generation.request().prefix_group, generation.has_logits());
    if (!admission) return;  // no id was free after all: it stays where it is
    begin(live, *admission);
  }
}

void EngineLoop::step_decode(const std::vector<GenerationId>& ids) {
  Batch batch(Batch::Kind::kDecode);
  for (const GenerationId id : ids) add_to(batch, id, 1);
  run(batch);
}

void EngineLoop::step_prefill(const std::vector<PrefillChunk>& chunks) {
  take_commands();  // those that came while the decode rows were sampled
  Batch batch(Batch::Kind::kPrefill);
  for (const PrefillChunk& chunk : chunks) add_to(batch, chunk.id, chunk.n_rows);
  run(batch);
}

void EngineLoop::run(const Batch& batch) {
  if (batch.empty() || run_once(batch)) return;
  // One of them made the step fail, or it failed for all: each alone tells, as it stands by then.
  stats_.n_retried_alone.fetch_add(1, std::memory_order_relaxed);
  take_commands();
  for (const Batch::Part& part : batch.parts()) {
    Batch alone(batch.kind());
    add_to(alone, part.id, part.n_rows);
    if (!alone.empty()) run_once(alone);
  }
}

// Its next rows, if it still wants some of this kind: it may have ended, or been paused or edited since the plan.
void EngineLoop::add_to(Batch& batch, GenerationId id, Position n_rows) {
  const Live* live = roster_.find(id);
  const bool decodes = batch.kind() == Batch::Kind::kDecode;
  if (live && live->may_step() && (!decodes || live->n_uncomputed() == 1))
    batch.add(*live->generation, *live->seq, n_rows);
}

// False if the step failed and served several.
bool EngineLoop::run_once(const Batch& batch) {
  const std::span<const Batch::Part> parts = batch.parts();
  const Result<StepStatus> status = step(batch);
  if (!status && parts.size() > 1) return false;
  if (!status) end(*roster_.find(parts.front().id), EndReason::kError, status.error());
  if (!status || *status == StepStatus::kAborted) {
    take_commands();  // who ended it does not wait for the next step
    return true;
  }
  const bool is_prefill = batch.kind() == Batch::Kind::kPrefill;
  (is_prefill ? stats_.n_prefill_rows : stats_.n_decode_rows).fetch_add(batch.rows().size(), std::memory_order_relaxed);
  const Instant now = clock_.now();
  for (const Batch::Part& part : parts) {
    Live& live = *roster_.find(part.id);
    live.generation->add_computed(part.n_rows, now);
    live.last_planned = now;
    if (is_prefill) pool_.publish(*live.seq, live.tokens_in_pool());
  }
  // Commands are taken before each row is sampled, so that no pause waits for the sampling of its neighbours.
  for (std::size_t i = 0; i < parts.size(); ++i) {
    in_flight_.clear();
    for (const Batch::Part& part : parts.subspan(i))
      if (batch.decides_next(part)) in_flight_.push_back(part.id);
    take_commands();
    in_flight_.clear();
    if (batch.decides_next(parts[i])) advance(parts[i].id, engine_.logits(parts[i].last_row()));
  }
  return true;
}

// The plan saw to it that the rows fit: what fails here is the engine's doing.
Result<StepStatus> EngineLoop::step(const Batch& batch) {
  StepStats& stats = batch.kind() == Batch::Kind::kPrefill ? stats_.prefill : stats_.decode;
  std::vector<GenerationId> served;
  for (const Batch::Part& part : batch.parts()) served.push_back(part.id);
  const Instant begun = clock_.now();
  interrupts_.begin_step(served, !last_step_aborted_);
  stats_.n_steps.fetch_add(1, std::memory_order_relaxed);
  const Result<StepStatus> status = engine_.step(batch.rows(), &interrupts_);
  interrupts_.end_step();
  stats_.n_steps_ended.fetch_add(1, std::memory_order_relaxed);

  last_step_aborted_ = status && *status == StepStatus::kAborted;
  if (last_step_aborted_) stats_.n_steps_aborted.fetch_add(1, std::memory_order_relaxed);
  last_step_ended_ = clock_.now();
  if (!status) stats_.n_steps_failed.fetch_add(1, std::memory_order_relaxed);
  if (!status || last_step_aborted_) return status;
  stats.seconds.observe((last_step_ended_ - begun).seconds());
  stats.rows.observe(static_cast<double>(batch.rows().size()));
  return status;
}

// The logits row that decides the next token of a generation has come.
void EngineLoop::advance(GenerationId id, std::span<const float> logits) {
  Live* live = roster_.find(id);
  if (!live || live->is(State::kFinished)) return;
  Generation& generation = *live->generation;
  const bool pause_is_due = live->is(State::kRunning) && generation.pause_is_due();
  if (live->is(State::kRunning) && !pause_is_due) {
    generation.choose(logits, clock_.now());
    if (live->is(State::kFinished)) leave_pool(*live);
    return;
  }
  generation.hold_logits(logits);
  if (pause_is_due) {
    freeze(*live, WaitReason::kPauseAt);
  } else if (live->is(State::kPausing)) {
    freeze(*live, WaitReason::kNone);  // the reason it was asked for
  } else {
    live->pause = generation.pause_record();
  }
  frozen_point_is_read(*live);
}

void EngineLoop::sample_resumed() {
  roster_.for_each([this](Live& live) {
    if (!live.is(State::kRunning) || !live.generation->has_logits() || live.reader_is_slow()) return;
    const std::vector<float> logits = live.generation->take_logits();
    live.generation->choose(logits, clock_.now());
    if (live.is(State::kFinished)) leave_pool(live);
  });
}

// ------------------------------------------------------------------------------------------------------------- state

void EngineLoop::freeze(Live& live, WaitReason reason) {
  const Instant now = clock_.now();
  Generation& generation = *live.generation;
  FERMATA_CHECK(generation.apply(Trigger::kReachPause, reason, now).has_value());
  live.pause = generation.pause_record();
  if (!live.pause_replies.empty()) count_interrupt(live);
  roster_.deliver(live);  // nothing of it is sent after the answer
  for (const Reply<PauseRecord>& reply : std::exchange(live.pause_replies, {})) reply.send(live.pause);
  if (live.is_settled()) pool_.publish(*live.seq, live.tokens_in_pool());
}

// Commands are taken after a step, so what was in flight when it was asked for has ended by now.
void EngineLoop::count_interrupt(const Live& live) {
  const auto who = static_cast<std::size_t>(interrupt_class(live.pause.reason));
  const Duration until_step_ended = last_step_ended_ - live.generation->pause_asked();
  stats_.frozen[who].observe(live.pause.reach.seconds());
  stats_.released[who].observe(std::max(until_step_ended, Duration()).seconds());
}

void EngineLoop::end(Live& live, EndReason reason, Error error) {
  live.generation->finish(reason, clock_.now(), std::move(error));
  leave_pool(live);
}

// Its generation says that less of it is computed than before: the rest goes out of the pool, and pages of it go. A
// page is kept whole or not at all.
void EngineLoop::keep_computed(Live& live) {
  Generation& generation = *live.generation;
  const Position n_in_pool = live.seq ? engine_.ledger().length(*live.seq) : 0;
  live.pages.drop_behind(generation.computed());
  generation.trim_computed(live.pages.empty() ? n_in_pool : live.pages.end());
  if (generation.computed() < n_in_pool) pool_.take_back(*live.seq, generation.computed());
  if (live.is_settled()) pool_.publish(*live.seq, live.tokens_in_pool());
}

void EngineLoop::leave_pool(Live& live) {
  Generation& generation = *live.generation;
  if (live.seq) {
    pool_.retire(*live.seq, live.tokens_in_pool(), clock_.now());
    live.seq.reset();
    if (!live.is(State::kFinished)) generation.set_cached(0);
    if (live.is(State::kPaused)) live.pause = generation.pause_record();
  }
  live.pages.clear();
  live.leaves = false;
  if (!live.is(State::kFinished)) return;
  live.comes_back = false;
  for (const Reply<PauseRecord>& reply : std::exchange(live.pause_replies, {}))
    reply.send(Error{Code::kWrongState, "it ended before the pause was reached",
                     std::string(to_string(generation.end_reason()))});
  frozen_point_is_read(live);
}

// What is shared costs the length of what is cached, hence not each turn.
void EngineLoop::look_at_pool() {
  constexpr Duration kEvery = seconds(1);
  const Instant now = clock_.now();
  if (pool_seen_ && now - *pool_seen_ < kEvery) return;
  pool_seen_ = now;
  const std::vector<CachedView> cached = pool_.cached(true);
  std::uint32_t n_cells = 0;
  for (const CachedView& one : cached) n_cells += one.n_exclusive;
  stats_.n_cells_cached.store(n_cells, std::memory_order_relaxed);
  stats_.n_cells_free.store(pool_.n_free(), std::memory_order_relaxed);
  stats_.n_seqs_cached.store(static_cast<std::int32_t>(cached.size()), std::memory_order_relaxed);
  stats_.n_seqs_free.store(pool_.view(cached, 0).n_seqs_free, std::memory_order_relaxed);
}

void EngineLoop::audit() const {
  pool_.audit();
  roster_.for_each([this](const Live& live) {
    if (live.seq) FERMATA_CHECK_EQ(engine_.ledger().length(*live.seq), live.n_in_pool());
    if (!live.seq && !live.pages.empty()) FERMATA_CHECK_EQ(live.pages.begin(), 0);
    if (live.leaves) FERMATA_CHECK(live.seq && live.is(State::kPaused));
    if (live.is(State::kRestoring)) FERMATA_CHECK(live.seq && !live.pages.empty());
    if (live.is(State::kRunning)) FERMATA_CHECK(live.is_settled());
  });
}

void EngineLoop::apply_timeouts() {
  const Instant now = clock_.now();
  roster_.for_each([&](Live& live) {
    const Generation& generation = *live.generation;
    if (live.is(State::kFinished)) {
      const bool has_more = !live.unsent.empty();
      if (has_more && now - live.unsent.back().time >= milliseconds(limits::kUnheardEndMs)) live.events->abandon();
      return;
    }
    if (live.unsent.size() > limits::kUnsentEventsMax) live.events->abandon();  // it never reads
    if (live.events->abandoned()) return end(live, EndReason::kDisconnected);
    if (!live.is(State::kRunning)) return;
    const auto& limit = generation.request().timeout;
    const bool too_long = limit && generation.running_time(now) >= *limit;
    // Who could go on and is not asked waits for its turn, which is no fault of its own.
    const bool waits_its_turn = live.may_step() && live.last_planned <= generation.last_progress();
    const bool no_progress = !waits_its_turn && now - generation.last_progress() >= options_.no_progress_timeout;
    if (too_long || no_progress)
      end(live, EndReason::kTimeout,
          {Code::kAborted,
           too_long ? "it has run for the " + std::to_string(limit->ns / 1'000'000) + " ms that its request allows"
                    : "it made no progress: its reader did not read",
           {},
           false});
  });
}

}  // namespace fermata
