#pragma once

#include <atomic>

#include "cli/interrupt_signal.h"
#include "server/server.h"

namespace fermata::cli {

// What signals mean to a server. Until it is over the first asks it to stop and the second to hurry; while the model is
// being loaded, which hurries for nobody, the second ends the process. The third always does. With a file of keys a
// hangup has it read anew, also one that came before the server listened. Made before the server; its calls come from
// the server's thread.
class Stopping {
 public:
  Stopping(InterruptSignal& signals, bool has_keys);
  ~Stopping() { over(); }
  Stopping(const Stopping&) = delete;
  Stopping& operator=(const Stopping&) = delete;

  void listening(ServerControls controls);
  void ready() { is_ready_ = true; }
  void over();  // it ends by itself now

 private:
  InterruptSignal& signals_;
  const bool has_keys_;
  std::atomic<bool> is_hung_up_{false};  // before there was anybody to tell
  std::atomic<bool> is_ready_{false};
};

}  // namespace fermata::cli
