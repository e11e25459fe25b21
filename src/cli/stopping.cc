#include "cli/stopping.h"

#include <utility>

namespace fermata::cli {

Stopping::Stopping(InterruptSignal& signals, bool hangup_reloads) : signals_(signals), hangup_reloads_(hangup_reloads) {
  if (hangup_reloads_) signals_.on_hangup([this] { is_hung_up_ = true; });
}

void Stopping::listening(ServerControls controls) {
  // First: whatever else is done here, a signal that comes meanwhile stops it and does not kill it.
  signals_.on_signal([this, stop = std::move(controls.stop)](int n) {
    if (n > (is_ready_ ? 2 : 1)) return false;
    stop();
    return true;
  });
  // Else a lost terminal ends it, as it ends any program.
  if (!hangup_reloads_) return;
  signals_.on_hangup(controls.read_keys);
  if (is_hung_up_) controls.read_keys();
}

void Stopping::over() {
  if (hangup_reloads_) signals_.on_hangup([] {});
  signals_.on_signal([](int n) { return n <= 2; });
}

}  // namespace fermata::cli
