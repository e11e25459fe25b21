#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <iterator>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace fermata {

// Messages from many threads to one owner, handed over in order of arrival. Two lanes, each with room of its own, so
// that a flood of work (submit, resume, read) cannot keep an interrupt (pause, cancel, signal) out. Bounded: a full
// lane answers kBusy. Never blocks the sender.
template <class Message>
class Mailbox {
 public:
  enum class Lane { kControl, kWork };

  Mailbox(std::size_t n_control_max, std::size_t n_work_max) : n_control_max_(n_control_max), n_work_max_(n_work_max) {}

  // The message is taken if there is room for it, and stays as it is if there is none.
  Result<void> put(Lane lane, Message&& message) {
    {
      std::lock_guard lock(mutex_);
      if (closed_) return Error{Code::kWrongState, "the server is stopping", {}, true};
      std::size_t& n_waiting = lane == Lane::kControl ? n_control_ : n_work_;
      const std::size_t limit = lane == Lane::kControl ? n_control_max_ : n_work_max_;
      if (n_waiting >= limit)
        return Error{Code::kBusy, "too many calls are waiting; try again", "limit " + std::to_string(limit), true};
      ++n_waiting;
      queue_.push_back(std::move(message));
    }
    arrived_.notify_one();
    return {};
  }

  // Owner: takes everything that waits.
  std::vector<Message> take_all() {
    std::lock_guard lock(mutex_);
    return take_locked();
  }

  // Owner: as take_all(), but sleeps until something arrives, the mailbox is closed, or `at_most` has passed.
  std::vector<Message> wait_and_take_all(Duration at_most) {
    std::unique_lock lock(mutex_);
    arrived_.wait_for(lock, std::chrono::nanoseconds(at_most.ns), [this] { return closed_ || !queue_.empty(); });
    return take_locked();
  }

  // From now on put() refuses; what already waits can still be taken.
  void close() {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    arrived_.notify_all();
  }

 private:
  std::vector<Message> take_locked() {
    std::vector<Message> taken(std::make_move_iterator(queue_.begin()), std::make_move_iterator(queue_.end()));
    queue_.clear();
    n_control_ = n_work_ = 0;
    return taken;
  }

  const std::size_t n_control_max_;
  const std::size_t n_work_max_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Message> queue_;
  std::size_t n_control_ = 0;
  std::size_t n_work_ = 0;
  bool closed_ = false;
};

}  // namespace fermata
