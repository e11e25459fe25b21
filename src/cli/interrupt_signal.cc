#include "cli/interrupt_signal.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <utility>

#include "base/check.h"
#include "cli/exit_codes.h"
#include "cli/terminal.h"

namespace fermata::cli {
namespace {

sigset_t taken_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  struct sigaction hangup {};
  if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) sigaddset(&set, SIGHUP);
  return set;
}

const char* name_of(int signal) {
  switch (signal) {
    case SIGINT: return "Ctrl-C";
    case SIGTERM: return "SIGTERM";
    case SIGHUP: return "SIGHUP";
    default: return "a signal";
  }
}

[[noreturn]] void leave(int signal) {
  const sigset_t set = taken_signals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);  // if writing out takes for ever, the next one kills
  dprintf(STDERR_FILENO, "%sfermata: ended by %s\n", Style(STDERR_FILENO).on() ? "\r\x1b[K" : "", name_of(signal));
  // A main thread that is writing this moment holds the lock, and may hold it for ever.
  if (ftrylockfile(stdout) == 0) std::fflush(stdout);
  _exit(exit_code_for_signal(signal));
}

}  // namespace

InterruptSignal::InterruptSignal() {
  const sigset_t set = taken_signals();
  FERMATA_CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  signals_ = Descriptor(signalfd(-1, &set, SFD_CLOEXEC));
  stop_ = Descriptor(eventfd(0, EFD_CLOEXEC));
  FERMATA_CHECK(signals_.is_open() && stop_.is_open());
  watch({});
}

InterruptSignal::~InterruptSignal() {
  stop_watching();
  const sigset_t set = taken_signals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void InterruptSignal::on_signal(std::function<bool(int n)> take) { watch({std::move(take), {}, wish_.hangup}); }
void InterruptSignal::on_first(std::function<void()> first) {
  on_signal([first = std::move(first)](int n) {
    if (n == 1) first();
    return n == 1;
  });
}
void InterruptSignal::before_leaving(std::function<void()> clean_up) { watch({{}, std::move(clean_up), wish_.hangup}); }
void InterruptSignal::on_hangup(std::function<void()> hangup) {
  watch({wish_.take, wish_.clean_up, std::move(hangup)});
}
void InterruptSignal::leave_at_once() { watch({}); }

// A signal that comes between waits for the next waiter.
void InterruptSignal::watch(Wish wish) {
  stop_watching();
  wish_ = std::move(wish);
  waiter_ = std::thread([this] { wait_for_signals(); });
}

void InterruptSignal::stop_watching() {
  if (!waiter_.joinable()) return;
  FERMATA_CHECK_EQ(eventfd_write(stop_.number(), 1), 0);
  waiter_.join();
  eventfd_t ignored = 0;
  FERMATA_CHECK_EQ(eventfd_read(stop_.number(), &ignored), 0);
}

void InterruptSignal::wait_for_signals() {
  while (true) {
    pollfd watched[] = {{stop_.number(), POLLIN, 0}, {signals_.number(), POLLIN, 0}};
    if (poll(watched, 2, -1) < 0) continue;
    if (watched[0].revents != 0) return;
    signalfd_siginfo info{};
    if (read(signals_.number(), &info, sizeof info) != ssize_t{sizeof info}) continue;
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGHUP && wish_.hangup) {
      wish_.hangup();
      continue;
    }
    int none = 0;
    received_.compare_exchange_strong(none, signal);
    if (wish_.take && wish_.take(++n_received_)) continue;
    if (wish_.clean_up) wish_.clean_up();
    leave(signal);
  }
}

}  // namespace fermata::cli
