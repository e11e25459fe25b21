#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/mailbox.h"
#include "engine/engine.h"
#include "runtime/batch.h"
#include "runtime/command.h"
#include "runtime/interrupt_line.h"
#include "runtime/live.h"
#include "runtime/loop_stats.h"
#include "runtime/pager.h"
#include "runtime/pool.h"
#include "runtime/roster.h"
#include "scheduler/plan.h"

namespace fermata {

struct LoopOptions {
  PlanLimits plan;
  Duration no_progress_timeout = milliseconds(limits::kNoProgressTimeoutMs);
  std::int32_t n_page_tokens = limits::kPageTokens;
  std::size_t page_bytes_max = limits::kPageBytesMax;
  std::size_t n_generations_max = limits::kGenerationsMax;
};

// The engine thread's work: drain, plan, step, sample, fold, emit. The only place that changes generations and the
// pool. turn() can also be called from a test, in one thread, with a fake engine and a clock that stands still.
//
//   commands ─► handle ─► page out ─► plan ─► decode step ─► advance ─► page in ─► prefill step ─► advance ─► events
//                                 (commands are taken again between a step and its advance, so that a pause that came
//                                  during the step keeps the row's logits instead of sampling from them)
class EngineLoop {
 public:
  EngineLoop(Engine& engine, const Clock& clock, LoopOptions options = {});

  // Any thread: queues a command; an interrupt also ends the step in flight if that serves nobody else.
  // What is refused stays with its caller.
  Result<void> post(Command&& command);

  // One turn; false if there was nothing to do. Engine thread.
  bool turn();
  // Turns until close(); sleeps when there is nothing to do. On close every generation ends with kShutdown.
  void run();
  // Any thread: no more commands are taken; run() returns.
  void close();

  const LoopStats& stats() const { return stats_; }
  const Roster& roster() const { return roster_; }
  // Ends the process if its books disagree with the pool's.
  void audit() const;

 private:
  // --- commands (engine_commands.cc)
  void take_commands();
  void handle_commands(std::vector<Command> commands);
  void handle(Command& command);
  bool must_wait(const Live& live, const Command& command) const;
  void on(Submit& submit, Instant asked);
  void on(Pause& pause, Instant asked);
  void on(Resume& resume, Instant asked);
  void on(Cancel& cancel, Instant asked);
  void on(Inspect& inspect, Instant asked);
  void on(TakeAnchor& take, Instant asked);
  void on(Revise& revise, Instant asked);
  void on(GetStatus& get, Instant asked);
  void answer_inspections(Live& live);
  void frozen_point_is_read(Live& live);  // answers those who wanted to see it; then come the commands that waited
  bool in_flight(GenerationId id) const;
  Result<Live*> find_held(GenerationId id, std::string_view cannot);

  // --- state
  void freeze(Live& live, WaitReason reason);
  void end(Live& live, EndReason reason, Error error = {});
  void keep_computed(Live& live);  // of what it had: as much as its generation says
  void leave_pool(Live& live);     // its sequence becomes cache; what it computed must be found or computed again
  void apply_timeouts();
  void sample_resumed();
  void count_interrupt(const Live& live);
  void look_at_pool();

  // --- plan and apply
  Plan plan_turn();
  std::vector<GenerationView> views();
  void look_up_next(std::vector<GenerationView>& views);
  void apply_pool_changes(const Plan& plan);
  void step_decode(const std::vector<GenerationId>& ids);
  void step_prefill(const std::vector<PrefillChunk>& chunks);
  void add_to(Batch& batch, GenerationId id, Position n_rows);
  void run(const Batch& batch);
  bool run_once(const Batch& batch);
  Result<StepStatus> step(const Batch& batch);
  void advance(GenerationId id, std::span<const float> logits);

  // --- pages (engine_paging.cc)
  bool park_one();
  void give_way(Live& live);
  void on_out_of_cells(Live& live);
  bool somebody_leaves();
  void page_out();
  void go_on(Live& live);
  void begin(Live& live, Pool::Admission admission);
  void page_in(GenerationId id);

  Engine& engine_;
  const Clock& clock_;
  const LoopOptions options_;
  Mailbox<Command> mailbox_;
  InterruptLine interrupts_;
  Pool pool_;
  Pager pager_;
  Roster roster_;
  LoopStats stats_;
  std::vector<GenerationId> in_flight_;  // have rows in a step whose logits are not used yet
  bool last_step_aborted_ = false;
  Instant last_step_ended_;
  std::optional<Instant> pool_seen_;
  std::atomic<bool> closing_{false};
};

}  // namespace fermata
