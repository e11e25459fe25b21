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

std::span<const TokenId> computed_tokens(const Generation& generation) {
  return generation.journal().tokens().first(static_cast<std::size_t>(generation.computed()));
}

}  // namespace

EngineLoop::EngineLoop(Engine& engine, const Clock& clock, LoopOptions options)
    : engine_(engine),
      clock_(clock),
      options_(fitted(options, engine.info())),
      mailbox_(limits::kControlCallsMax, limits::kWorkCallsMax),
      pool_(engine) {}

bool EngineLoop::turn() {
  take_commands();
  apply_timeouts();
  sample_resumed();

  const Plan plan = plan_turn();
  if (plan.out_of_cells) on_out_of_cells(*roster_.find(*plan.out_of_cells));
  apply_pool_changes(plan);
  if (!plan.decode.empty()) step_decode(plan.decode);
  roster_.deliver();  // tokens do not wait for a neighbour's prompt
  if (plan.prefill) step_prefill(*plan.prefill);
  roster_.deliver();
  return !plan.idle() || plan.out_of_cells;
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
    view.running = live.may_step();
    if (!view.queued && !view.running) return;
    view.wanted = live.generation->wanted();
    view.computed = live.generation->computed();
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
    if (view.queued &&
        (!next || view.priority > next->priority || (view.priority == next->priority && view.arrival < next->arrival)))
      next = &view;
  if (!next || next->wanted >= engine_.info().n_cells) return;  // who needs every cell has nothing kept for it
  const Live& live = *roster_.find(next->id);
  const Pool::Known known = pool_.known(live.generation->journal().tokens(), clock_.now());
  next->n_room_min -= known.n_tokens;
  next->source = known.cached_source;
}

Plan EngineLoop::plan_turn() {
  while (true) {
    const std::vector<GenerationView> generations = views();
    std::uint32_t n_needed = 0;
    for (const GenerationView& view : generations)
      n_needed += static_cast<std::uint32_t>(view.queued ? view.n_room_min : view.wanted - view.computed + 1);
    std::uint32_t n_pinned = 0;
    roster_.for_each([&](const Live& live) {
      if (live.seq && live.is(State::kPaused)) n_pinned += static_cast<std::uint32_t>(live.generation->computed());
    });
    const std::vector<CachedView> cached = pool_.cached(n_needed > pool_.n_free());
    PlanLimits limits = options_.plan;
    // The next step cannot be aborted: a short one, so that the next interrupt need not wait long for it.
    if (last_step_aborted_) limits.n_prefill_rows = std::min(limits.n_prefill_rows, limits.n_prefill_rows_shared);
    Plan plan = make_plan(generations, pool_.view(cached, n_pinned), limits, clock_.now());

    // A generation that stands still keeps its cells until somebody lacks them; then it gives them up before one that
    // gets on does.
    const bool somebody_lacks_room =
        !plan.preempt.empty() || plan.out_of_cells || (plan.idle() && !generations.empty());
    if (!somebody_lacks_room || !park_one()) return plan;
  }
}

// A paused one first, then one whose reader is slow: that goes on by itself when its reader does.
bool EngineLoop::park_one() {
  Live* paused = nullptr;
  Live* stalled = nullptr;
  roster_.for_each([&](Live& live) {
    if (!paused && live.is(State::kPaused) && live.seq && live.inspections.empty()) paused = &live;
    if (!stalled && live.is(State::kRunning) && live.seq && live.reader_is_slow()) stalled = &live;
  });
  if (!paused && !stalled) return false;
  give_way(paused ? *paused : *stalled);
  stats_.n_parked.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// Its cells go. It is admitted again as soon as there is room; or, if it was paused already, when it is resumed.
void EngineLoop::give_way(Live& live) {
  leave_pool(live);
  if (live.is(State::kPaused)) return frozen_point_is_read(live);  // as far as it can be
  freeze(live, WaitReason::kPreempted);
  live.comes_back = true;
}

void EngineLoop::on_out_of_cells(Live& live) {
  if (live.is(State::kPaused)) return give_way(live);
  end(live, EndReason::kLength);
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
    Generation& generation = *live.generation;
    const Result<Pool::Admission> admission = pool_.admit(generation.journal().tokens(), clock_.now());
    if (!admission) return;  // no id was free after all: it stays where it is
    if (live.comes_back) {
      live.comes_back = false;
      FERMATA_CHECK(generation.apply(Trigger::kRequeue, WaitReason::kQueue, clock_.now()).has_value());
    }
    live.seq = admission->seq;
    generation.set_cached(admission->n_cached);
    stats_.n_cached_rows.fetch_add(static_cast<std::uint64_t>(admission->n_cached), std::memory_order_relaxed);
    FERMATA_CHECK(generation.apply(Trigger::kAdmit, WaitReason::kNone, clock_.now()).has_value());
  }
}

void EngineLoop::step_decode(const std::vector<GenerationId>& ids) {
  std::vector<Row> rows;
  std::vector<GenerationId> served;
  for (const GenerationId id : ids) {
    const Live* live = roster_.find(id);
    if (!live || !live->may_step() || live->n_uncomputed() != 1) continue;  // ended or was paused since the plan
    const Generation& generation = *live->generation;
    rows.push_back({generation.next_tokens(1).front(), generation.computed(), *live->seq, true});
    served.push_back(id);
  }
  if (rows.empty()) return;
  if (step(rows, served) != StepStatus::kDone) return take_commands();  // who ended it does not wait for the next step

  stats_.n_decode_rows.fetch_add(rows.size(), std::memory_order_relaxed);
  const Instant now = clock_.now();
  for (const GenerationId id : served) {
    Live& live = *roster_.find(id);
    live.generation->add_computed(1, now);
    live.last_planned = now;
  }
  // Commands are taken before each row is sampled, so that no pause waits for the sampling of its neighbours.
  for (std::size_t i = 0; i < served.size(); ++i) {
    in_flight_.assign(served.begin() + static_cast<std::ptrdiff_t>(i), served.end());
    take_commands();
    in_flight_.clear();
    advance(served[i], engine_.logits(i));
  }
}

void EngineLoop::step_prefill(const PrefillChunk& chunk) {
  take_commands();  // those that came while the decode rows were sampled
  Live* live = roster_.find(chunk.id);
  if (!live || !live->may_step()) return;
  Generation& generation = *live->generation;
  const std::span<const TokenId> tokens = generation.next_tokens(chunk.n_rows);
  std::vector<Row> rows;
  rows.reserve(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const Position position = generation.computed() + static_cast<Position>(i);
    rows.push_back({tokens[i], position, *live->seq, position + 1 == generation.wanted()});
  }
  live->last_planned = clock_.now();
  if (step(rows, {&chunk.id, 1}) != StepStatus::kDone) return take_commands();

  stats_.n_prefill_rows.fetch_add(rows.size(), std::memory_order_relaxed);
  generation.add_computed(static_cast<Position>(rows.size()), clock_.now());
  pool_.publish(*live->seq, computed_tokens(generation));
  const bool decides_next = rows.back().wants_logits;
  if (decides_next) in_flight_ = {chunk.id};
  take_commands();
  in_flight_.clear();
  if (decides_next) advance(chunk.id, engine_.logits(rows.size() - 1));
}

// Nothing if the step failed; then the generations it served have ended.
std::optional<StepStatus> EngineLoop::step(std::span<const Row> rows, std::span<const GenerationId> served) {
  interrupts_.begin_step(served, !last_step_aborted_);
  stats_.n_steps.fetch_add(1, std::memory_order_relaxed);
  const Result<StepStatus> status = engine_.step(rows, &interrupts_);
  interrupts_.end_step();
  stats_.n_steps_done.fetch_add(1, std::memory_order_relaxed);

  last_step_aborted_ = status && *status == StepStatus::kAborted;
  if (last_step_aborted_) stats_.n_steps_aborted.fetch_add(1, std::memory_order_relaxed);
  if (status) return *status;
  // The plan saw to it that the rows fit; what fails here is the engine's doing, and only those it served are hit.
  for (const GenerationId id : served) end(*roster_.find(id), EndReason::kError, status.error());
  return std::nullopt;
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
    freeze(*live, WaitReason::kUser);
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
  roster_.deliver(live);  // nothing of it is sent after the answer
  for (const Reply<PauseRecord>& reply : std::exchange(live.pause_replies, {})) reply.send(live.pause);
  if (live.seq) pool_.publish(*live.seq, computed_tokens(generation));
}

void EngineLoop::end(Live& live, EndReason reason, Error error) {
  live.generation->finish(reason, clock_.now(), std::move(error));
  leave_pool(live);
}

void EngineLoop::leave_pool(Live& live) {
  Generation& generation = *live.generation;
  if (live.seq) {
    const auto computed = computed_tokens(generation);
    pool_.retire(*live.seq, computed, clock_.now());
    live.seq.reset();
    if (!live.is(State::kFinished)) generation.set_cached(0);
    if (live.is(State::kPaused)) live.pause = generation.pause_record();
  }
  if (!live.is(State::kFinished)) return;
  live.comes_back = false;
  for (const Reply<PauseRecord>& reply : std::exchange(live.pause_replies, {}))
    reply.send(Error{Code::kWrongState, "it ended before the pause was reached",
                     std::string(to_string(generation.end_reason()))});
  frozen_point_is_read(live);
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
           too_long ? "its time limit was reached" : "it made no progress: its reader did not read",
           {},
           false});
  });
}

}  // namespace fermata
