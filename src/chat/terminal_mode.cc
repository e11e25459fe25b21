#include "chat/terminal_mode.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <string_view>

#include "base/check.h"

namespace fermata::chat {
namespace {

constexpr std::string_view kPasteOn = "\x1b[?2004h";
constexpr std::string_view kPasteOff = "\x1b[?2004l";
constexpr std::array kKilling = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGQUIT, SIGSYS, SIGTRAP, SIGXCPU};
constexpr std::array kOfTerminal = {SIGWINCH, SIGTSTP, SIGCONT};

// What handlers of signals touch.
enum State : int { kOurs, kTheirs, kOver };
std::atomic<int> state{kTheirs};
termios before;  // valid while state is kOurs
std::atomic<int> wake_descriptor{-1};
std::atomic<bool> is_resized{false};
std::atomic<bool> is_suspended{false};
std::atomic<bool> is_continued{false};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(STDOUT_FILENO, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

void set_as_before() {
  tcsetattr(STDIN_FILENO, TCSANOW, &before);  // first: a terminal that is stuck takes no bytes
  write_all(kPasteOff);
}

// The handler is gone by SA_RESETHAND: the signal does what it does to any program.
void on_killing(int signal) {
  TerminalMode::give_back_for_good();
  raise(signal);
}

void on_terminal(int signal) {
  const int saved_errno = errno;
  (signal == SIGWINCH ? is_resized : signal == SIGTSTP ? is_suspended : is_continued).store(true);
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t ignored = write(wake_descriptor.load(), &one, sizeof one);
  errno = saved_errno;
}

void handle(int signal, void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  FERMATA_CHECK_EQ(sigaction(signal, &action, nullptr), 0);
}

// Not what whoever started us ignores, as nohup does.
void handle_unless_ignored(int signal, void (*handler)(int), int flags) {
  struct sigaction now {};
  if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) handle(signal, handler, flags);
}

}  // namespace

TerminalMode::TerminalMode() {
  for (const int signal : kKilling) handle_unless_ignored(signal, on_killing, SA_RESETHAND | SA_NODEFER);
  take();
}

TerminalMode::~TerminalMode() {
  give_back();
  for (const int signal : kKilling) handle_unless_ignored(signal, SIG_DFL, 0);
}

bool TerminalMode::take() {
  if (state.load() != kTheirs || tcgetattr(STDIN_FILENO, &before) != 0) return false;
  termios ours = before;
  ours.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG | IEXTEN);
  ours.c_iflag &= ~static_cast<tcflag_t>(IXON | ICRNL | INLCR | IGNCR | ISTRIP);
  ours.c_oflag |= OPOST | ONLCR;
  ours.c_cc[VMIN] = 1;
  ours.c_cc[VTIME] = 0;
  int expected = kTheirs;
  if (!state.compare_exchange_strong(expected, kOurs)) return false;  // given back for good meanwhile
  if (tcsetattr(STDIN_FILENO, TCSANOW, &ours) != 0) return false;
  write_all(kPasteOn);
  if (state.load() == kOver) set_as_before();  // likewise, before it was set
  return true;
}

void TerminalMode::give_back() {
  int expected = kOurs;
  if (state.compare_exchange_strong(expected, kTheirs)) set_as_before();
}

void TerminalMode::give_back_for_good() {
  const int saved_errno = errno;
  if (state.exchange(kOver) == kOurs) set_as_before();
  errno = saved_errno;
}

bool TerminalMode::is_there() { return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1; }

TerminalSize TerminalMode::size() {
  winsize told{};
  TerminalSize size;
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &told) != 0) return size;
  if (told.ws_row > 0) size.n_rows = told.ws_row;
  if (told.ws_col > 0) size.n_columns = told.ws_col;
  return size;
}

TerminalSignals::TerminalSignals() : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  FERMATA_CHECK(wake_.is_open());
  wake_descriptor = wake_.number();
  for (const int signal : kOfTerminal) handle_unless_ignored(signal, on_terminal, SA_RESTART);
}

TerminalSignals::~TerminalSignals() {
  for (const int signal : kOfTerminal) handle_unless_ignored(signal, SIG_DFL, 0);
  wake_descriptor = -1;
}

TerminalSignals::Came TerminalSignals::take() {
  eventfd_t ignored = 0;
  eventfd_read(wake_.number(), &ignored);
  return {is_resized.exchange(false), is_suspended.exchange(false), is_continued.exchange(false)};
}

void TerminalSignals::suspend() {
  struct sigaction ours {};
  sigaction(SIGTSTP, nullptr, &ours);
  if (ours.sa_handler == SIG_IGN) return;  // a shell without job control
  handle(SIGTSTP, SIG_DFL, 0);
  kill(0, SIGTSTP);
  handle(SIGTSTP, ours.sa_handler, SA_RESTART);
  is_suspended = false;
}

}  // namespace fermata::chat
