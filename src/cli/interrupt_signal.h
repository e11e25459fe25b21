#pragma once

#include <functional>
#include <thread>

namespace fermata::cli {

// While it lives, Ctrl-C (SIGINT) and SIGTERM call `first` once, on a thread of its own; a second one ends the process
// with 130. Must be made before any other thread, since threads inherit which signals are blocked.
class InterruptSignal {
 public:
  InterruptSignal();
  ~InterruptSignal();
  InterruptSignal(const InterruptSignal&) = delete;
  InterruptSignal& operator=(const InterruptSignal&) = delete;

  // Whether one has come that nobody has handled yet (before on_first()).
  static bool is_pending();

  // From now on; may be called once.
  void on_first(std::function<void()> first);

  // `first` is not called any more, and what it refers to may go. A signal that comes now waits for the destructor.
  void stop();

 private:
  std::thread waiter_;
};

}  // namespace fermata::cli
