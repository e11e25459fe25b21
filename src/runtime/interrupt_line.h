#pragma once

#include <atomic>
#include <mutex>
#include <span>
#include <vector>

#include "base/ids.h"
#include "engine/engine.h"

namespace fermata {

// Ends the step in flight when, and only when, it serves nothing but interrupted generations. The engine thread says
// whom a step serves; whoever interrupts a generation (after its command is in the mailbox) says so here. A step that
// follows an aborted one cannot be aborted, so no stream of interrupts can starve anyone.
//
// An interrupt that comes late, when its generation is already in a later step, may end that step for nothing: it is
// computed again, with the same bits. Thread-safe; beside Mailbox and Ring the only place with a lock.
class InterruptLine final : public AbortFlag {
 public:
  // Engine thread, right before it takes commands: interrupts said so far are among them.
  void begin_commands();

  // Engine thread, around a step.
  void begin_step(std::span<const GenerationId> served, bool may_abort);
  void end_step();

  // Any thread.
  void interrupt(GenerationId id);

  bool raised() const override { return raised_.load(std::memory_order_relaxed); }

 private:
  void drop_locked(GenerationId id);

  std::mutex mutex_;
  std::vector<GenerationId> served_;   // by the step in flight, and not interrupted yet
  std::vector<GenerationId> pending_;  // interrupted since commands were last taken
  bool armed_ = false;
  std::atomic<bool> raised_{false};
};

}  // namespace fermata
