#include "cli/interrupt_signal.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <utility>

#include "base/check.h"
#include "cli/exit_codes.h"

namespace fermata::cli {
namespace {

constexpr int kStopWaiting = SIGUSR2;  // sent by the destructor to its own waiter

sigset_t waited_for() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, kStopWaiting);
  return set;
}

}  // namespace

InterruptSignal::InterruptSignal() {
  const sigset_t set = waited_for();
  FERMATA_CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
}

void InterruptSignal::stop() {
  if (!waiter_.joinable()) return;
  pthread_kill(waiter_.native_handle(), kStopWaiting);
  waiter_.join();
}

InterruptSignal::~InterruptSignal() {
  stop();
  const sigset_t set = waited_for();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

bool InterruptSignal::is_pending() {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1;
}

void InterruptSignal::on_first(std::function<void()> first) {
  FERMATA_CHECK(!waiter_.joinable());
  waiter_ = std::thread([first = std::move(first)] {
    const sigset_t set = waited_for();
    for (bool is_first = true;; is_first = false) {
      int signal = 0;
      if (sigwait(&set, &signal) != 0 || signal == kStopWaiting) return;
      if (!is_first) _exit(kInterrupted);
      first();
    }
  });
}

}  // namespace fermata::cli
