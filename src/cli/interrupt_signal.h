#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "base/regular_file.h"

namespace fermata::cli {

// While it lives, Ctrl-C (SIGINT), SIGTERM and a lost terminal (SIGHUP, unless it is ignored as under nohup) are taken
// by a thread of its own. At first, and again after leave_at_once(), a signal ends the process at once: it says so on
// standard error, writes out what was printed, and exits with 128 + signal. No signal is used inside.
// Made before any other thread, since threads inherit which signals are blocked; used by the main thread, and by one
// other at a time while that waits.
class InterruptSignal {
 public:
  InterruptSignal();
  ~InterruptSignal();
  InterruptSignal(const InterruptSignal&) = delete;
  InterruptSignal& operator=(const InterruptSignal&) = delete;

  // From now on every signal calls this instead, on the other thread. `n`: how many were taken so since the first
  // call of this, this one included. True: it is dealt with; false: it ends the process.
  void on_signal(std::function<bool(int n)> take);
  // From now on the first signal calls this instead, on the other thread; the second ends the process.
  void on_first(std::function<void()> first);
  // From now on this is called before the process ends: it removes what is half-made.
  void before_leaving(std::function<void()> clean_up);
  // From now on SIGHUP calls this each time, on the other thread, and ends nothing; other signals do what they did.
  void on_hangup(std::function<void()> hangup);
  // What was set is not called any more, and what it refers to may go.
  void leave_at_once();

  // The first signal that came, 0 if none has.
  int received() const { return received_.load(); }

 private:
  struct Wish {
    std::function<bool(int n)> take = {};
    std::function<void()> clean_up = {};
    std::function<void()> hangup = {};
  };
  void watch(Wish wish);
  void stop_watching();
  void wait_for_signals();

  Descriptor signals_;
  Descriptor stop_;  // written: the waiter returns, and signals wait for the next one
  std::atomic<int> received_{0};
  int n_received_ = 0;  // of the waiter, while it waits
  Wish wish_;           // the same
  std::thread waiter_;
};

}  // namespace fermata::cli
