#include "runtime/interrupt_line.h"

namespace fermata {

void InterruptLine::begin_commands() {
  std::lock_guard lock(mutex_);
  pending_.clear();
}

void InterruptLine::begin_step(std::span<const GenerationId> served, bool may_abort) {
  std::lock_guard lock(mutex_);
  served_.assign(served.begin(), served.end());
  armed_ = may_abort;
  for (const GenerationId id : pending_) drop_locked(id);
}

void InterruptLine::end_step() {
  std::lock_guard lock(mutex_);
  served_.clear();
  armed_ = false;
  raised_.store(false, std::memory_order_relaxed);
}

void InterruptLine::interrupt(GenerationId id) {
  std::lock_guard lock(mutex_);
  pending_.push_back(id);
  drop_locked(id);
}

void InterruptLine::drop_locked(GenerationId id) {
  const bool served_it = std::erase(served_, id) > 0;
  if (served_it && served_.empty() && armed_) raised_.store(true, std::memory_order_relaxed);
}

}  // namespace fermata
