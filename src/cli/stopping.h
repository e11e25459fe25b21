#pragma once

#include <atomic>

#include "cli/interrupt_signal.h"
#include "server/server.h"

namespace fermata::cli {

// What signals mean to a server. Until it is over the first asks it to stop and the second to hurry; while the model is
// being loaded, which hurries for nobody, the second ends the process. The third always does. A hangup, where it is
// not that of a terminal that was lost, has the file of keys read anew, if there is one, also when it came before the
// server listened. Made before the server; its calls come from the server's thread.
class Stopping {
 public:
  // hangup_reloads: there is a file of keys, or a service manager, which means a reload by it and nothing else.
  Stopping(InterruptSignal& signals, bool hangup_reloads);
  ~Stopping() { over(); }
  Stopping(const Stopping&) = delete;
  Stopping& operator=(const Stopping&) = delete;

  void listening(ServerControls controls);
  void ready() { is_ready_ = true; }
  bool is_ready() const { return is_ready_; }
  void over();  // it ends by itself now

 private:
  InterruptSignal& signals_;
  const bool hangup_reloads_;
  std::atomic<bool> is_hung_up_{false};  // before there was anybody to tell
  std::atomic<bool> is_ready_{false};
};

}  // namespace fermata::cli
