#include "cli/stopping.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <semaphore>

namespace fermata::cli {
namespace {

// What ends the process is asked of a process of its own; so is all the rest, since signals are the process's.
class StoppingTest : public testing::Test {
 protected:
  StoppingTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// A server that counts what it is asked.
struct Asked {
  std::counting_semaphore<> stop{0};
  std::counting_semaphore<> read_keys{0};
  ServerControls controls() {
    return {[this] { stop.release(); }, [this] { read_keys.release(); }};
  }
};

// Until a waiter has it: equal ones that wait would be one.
void send(int signal) {
  kill(getpid(), signal);
  sigset_t waiting;
  do {
    sched_yield();
    sigpending(&waiting);
  } while (sigismember(&waiting, signal) == 1);
}

[[noreturn]] void send_the_last(int signal) {
  kill(getpid(), signal);
  while (true) pause();
}

TEST_F(StoppingTest, OfAServerThatIsReadyTheThirdEndsTheProcess) {
  const auto run = [] {
    InterruptSignal signals;
    Asked server;
    Stopping stopping(signals, false);
    stopping.listening(server.controls());
    stopping.ready();
    for (int i = 0; i < 2; ++i) {
      send(SIGTERM);
      server.stop.acquire();
    }
    send_the_last(SIGTERM);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(143), "ended by SIGTERM");
}

TEST_F(StoppingTest, WhileTheModelIsLoadedTheSecondDoes) {
  const auto run = [] {
    InterruptSignal signals;
    Asked server;
    Stopping stopping(signals, false);
    stopping.listening(server.controls());
    send(SIGINT);
    server.stop.acquire();
    send_the_last(SIGINT);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(130), "ended by Ctrl-C");
}

TEST_F(StoppingTest, AHangupBeforeItListensIsToldThenAndOneMeanwhileKillsNothing) {
  const auto run = [] {
    ::signal(SIGHUP, SIG_DFL);  // whatever started this test
    InterruptSignal signals;
    Asked server;
    Stopping stopping(signals, true);
    send(SIGHUP);
    stopping.listening({[&] { server.stop.release(); },
                        [&] {
                          send(SIGTERM);  // while it begins to listen
                          server.stop.acquire();
                          server.read_keys.release();
                        }});
    server.read_keys.acquire();
    _exit(0);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}

TEST_F(StoppingTest, WithoutKeysALostTerminalEndsIt) {
  const auto run = [] {
    ::signal(SIGHUP, SIG_DFL);
    InterruptSignal signals;
    const Stopping stopping(signals, false);
    send_the_last(SIGHUP);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(129), "ended by SIGHUP");
}

TEST_F(StoppingTest, AServerThatIsOverIsAskedNothing) {
  const auto run = [] {
    ::signal(SIGHUP, SIG_DFL);
    InterruptSignal signals;
    Stopping stopping(signals, true);
    stopping.listening({[] { _exit(98); }, [] { _exit(99); }});
    stopping.over();
    for (const int signal : {SIGHUP, SIGTERM, SIGINT}) send(signal);
    send_the_last(SIGTERM);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(143), "ended by SIGTERM");
}

}  // namespace
}  // namespace fermata::cli
