#include "cli/interrupt_signal.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <future>

namespace fermata::cli {
namespace {

// What ends the process is asked of a process of its own.
class InterruptSignalTest : public testing::Test {
 protected:
  InterruptSignalTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  [[noreturn]] static void send_and_wait(std::initializer_list<int> signals) {
    for (const int signal : signals) kill(getpid(), signal);
    while (true) pause();
  }
};

TEST_F(InterruptSignalTest, AtFirstASignalEndsTheProcessAndSaysSo) {
  const auto run = [](int signal) {
    ::signal(SIGHUP, SIG_DFL);  // whatever started this test
    const InterruptSignal signals;
    std::printf("said before");  // and not flushed
    send_and_wait({signal});
  };
  EXPECT_EXIT(run(SIGTERM), testing::ExitedWithCode(143), "fermata: ended by SIGTERM\n");
  EXPECT_EXIT(run(SIGINT), testing::ExitedWithCode(130), "fermata: ended by Ctrl-C\n");
  EXPECT_EXIT(run(SIGHUP), testing::ExitedWithCode(129), "fermata: ended by SIGHUP\n");
}

TEST_F(InterruptSignalTest, TheSecondEndsTheProcessWhereTheFirstIsHandled) {
  const auto run = [] {
    InterruptSignal signals;
    std::promise<void> called;
    signals.on_first([&] { called.set_value(); });
    kill(getpid(), SIGINT);
    called.get_future().wait();
    if (signals.received() != SIGINT) _exit(99);
    send_and_wait({SIGTERM});
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(143), "ended by SIGTERM");
}

TEST_F(InterruptSignalTest, HowManyEndNothingIsSaidByWhoTakesThem) {
  const auto run = [] {
    InterruptSignal signals;
    std::promise<void> taken[2];
    signals.on_signal([&](int n) {
      if (n > 2) return false;
      taken[n - 1].set_value();
      return true;
    });
    // One after the other, but without waiting for anything that the first brings about.
    for (std::promise<void>& one : taken) {
      kill(getpid(), SIGTERM);
      one.get_future().wait();
    }
    signals.on_signal([](int n) {
      if (n != 3) _exit(98);  // it counts on
      return false;
    });
    send_and_wait({SIGINT});
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(130), "ended by Ctrl-C");
}

TEST_F(InterruptSignalTest, WhatIsHalfMadeIsRemovedBeforeLeaving) {
  const auto run = [] {
    InterruptSignal signals;
    signals.before_leaving([] { dprintf(STDERR_FILENO, "cleaned up\n"); });
    send_and_wait({SIGTERM});
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(143), "cleaned up\nfermata: ended by SIGTERM");
}

TEST_F(InterruptSignalTest, WhatWasSetIsNotCalledAnyMore) {
  const auto run = [] {
    InterruptSignal signals;
    signals.on_first([] { _exit(99); });
    signals.leave_at_once();
    send_and_wait({SIGTERM});
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(143), "");
}

TEST_F(InterruptSignalTest, AHangupThatIsWantedEndsNothing) {
  const auto run = [] {
    ::signal(SIGHUP, SIG_DFL);  // whatever started this test
    InterruptSignal signals;
    std::promise<void> hung_up[3];
    std::promise<void> stopped;
    int n = 0;
    signals.on_first([&] { stopped.set_value(); });
    signals.on_hangup([&] { hung_up[n++].set_value(); });  // and the other is still wanted
    for (int i = 0; i < 2; ++i) {
      kill(getpid(), SIGHUP);
      hung_up[i].get_future().wait();
    }
    if (signals.received() != 0) _exit(98);
    kill(getpid(), SIGTERM);
    stopped.get_future().wait();
    signals.on_first([] { _exit(97); });  // the first has been
    kill(getpid(), SIGHUP);
    hung_up[2].get_future().wait();
    signals.leave_at_once();
    send_and_wait({SIGHUP});
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(129), "ended by SIGHUP");
}

TEST_F(InterruptSignalTest, NoOtherSignalIsTaken) {
  const auto run = [] {
    InterruptSignal signals;
    signals.on_first([] { _exit(99); });
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    for (const int signal : {SIGUSR1, SIGUSR2, SIGQUIT, SIGPIPE})
      if (sigismember(&blocked, signal) != 0) _exit(98);
    send_and_wait({SIGUSR2});
  };
  EXPECT_EXIT(run(), testing::KilledBySignal(SIGUSR2), "") << "as if nobody had heard of it";
}

TEST_F(InterruptSignalTest, ALostTerminalThatIsIgnoredStaysIgnored) {
  const auto run = [] {
    ::signal(SIGHUP, SIG_IGN);
    const InterruptSignal signals;
    send_and_wait({SIGHUP, SIGTERM});
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(143), "");
}

TEST_F(InterruptSignalTest, LeavesTheMaskAsItWas) {
  { const InterruptSignal signals; }
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  EXPECT_EQ(sigismember(&blocked, SIGINT), 0);
}

}  // namespace
}  // namespace fermata::cli
