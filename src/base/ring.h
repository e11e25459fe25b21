#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "base/clock.h"

namespace fermata {

// Messages from one writer to one reader, in order, bounded. The writer never waits: push() on a full ring answers
// false, and what to do about a slow reader is the writer's rule. `wake` (optional) is called without the lock when the
// ring stops being empty or is closed; it must be cheap, must not throw and must not call back into the ring.
template <class Message>
class Ring {
 public:
  explicit Ring(std::size_t n_max, std::function<void()> wake = {}) : n_max_(n_max), wake_(std::move(wake)) {}

  [[nodiscard]] bool push(Message message) {
    bool was_empty = false;
    {
      std::lock_guard lock(mutex_);
      if (abandoned_) return true;
      if (closed_ || queue_.size() >= n_max_) return false;
      was_empty = queue_.empty();
      queue_.push_back(std::move(message));
    }
    arrived_.notify_one();
    if (was_empty && wake_) wake_();
    return true;
  }

  // How many more messages fit.
  std::size_t n_free() const {
    std::lock_guard lock(mutex_);
    return n_max_ - queue_.size();
  }

  std::optional<Message> try_pop() {
    std::lock_guard lock(mutex_);
    return pop_locked();
  }

  // Sleeps until a message is there; nothing once the ring is closed and empty, or `at_most` has passed.
  std::optional<Message> pop(Duration at_most) {
    std::unique_lock lock(mutex_);
    arrived_.wait_for(lock, std::chrono::nanoseconds(at_most.ns), [this] { return closed_ || !queue_.empty(); });
    return pop_locked();
  }

  // The writer has said everything.
  void close() {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    arrived_.notify_all();
    if (wake_) wake_();
  }

  // The reader is gone: what is there and what comes is dropped, and the writer can see it.
  void abandon() {
    std::lock_guard lock(mutex_);
    abandoned_ = true;
    queue_.clear();
  }
  bool abandoned() const {
    std::lock_guard lock(mutex_);
    return abandoned_;
  }

  bool closed_and_empty() const {
    std::lock_guard lock(mutex_);
    return closed_ && queue_.empty();
  }

 private:
  std::optional<Message> pop_locked() {
    if (queue_.empty()) return std::nullopt;
    std::optional<Message> message(std::move(queue_.front()));
    queue_.pop_front();
    return message;
  }

  const std::size_t n_max_;
  const std::function<void()> wake_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Message> queue_;
  bool closed_ = false;
  bool abandoned_ = false;
};

}  // namespace fermata
