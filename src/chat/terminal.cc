#include "chat/terminal.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "chat/readiness.h"

namespace fermata::chat {
namespace {

constexpr Duration kPatience = seconds(1);

}  // namespace

Terminal::~Terminal() {
  hide();
  end_line();
  flush();
}

int Terminal::input() const { return STDIN_FILENO; }

Duration Terminal::patience() const {
  const std::optional<Instant> deadline = decoder_.deadline();
  if (!deadline) return kPatience;
  return std::clamp(*deadline - clock_.now() + milliseconds(1), milliseconds(0), kPatience);
}

Terminal::Input Terminal::take_input() {
  Input input;
  take_signals(input);
  bool has_read = false;
  while (!input.is_gone && can_be_read(STDIN_FILENO)) {
    char bytes[4096];
    const ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    input.is_gone = n <= 0;
    if (n > 0) decoder_.add({bytes, static_cast<std::size_t>(n)}, clock_.now(), input.keys);
    has_read = true;
  }
  // Bytes that were there are older than this look at the clock.
  if (!has_read) decoder_.expire(clock_.now(), input.keys);
  return input;
}

void Terminal::take_signals(Input& input) {
  const TerminalSignals::Came came = signals_.take();
  input.is_suspend_asked = came.suspend;
  if (came.continued) {
    TerminalMode::give_back();
    begin_anew();
  }
  if (came.resized && TerminalMode::size() != screen_.size()) {
    out_ += screen_.resize(TerminalMode::size());
    is_block_shown_ = false;
  }
}

// What stands above is somebody else's.
void Terminal::begin_anew() {
  TerminalMode::take();
  screen_.forget();
  (void)screen_.resize(TerminalMode::size());
  is_block_shown_ = false;
}

void Terminal::write(std::string_view text, Look look) {
  if (text.empty()) return;
  out_ += screen_.write(text, look);
  is_block_shown_ = false;
}

void Terminal::end_line() {
  out_ += screen_.end_line();
  is_block_shown_ = false;
}

void Terminal::show(Block block) {
  block_ = std::move(block);
  is_block_shown_ = false;
}

void Terminal::hide() {
  block_.reset();
  out_ += screen_.hide();
}

void Terminal::clear() {
  screen_.forget();
  out_ += "\x1b[H\x1b[2J";
  is_block_shown_ = false;
}

bool Terminal::flush() {
  if (block_ && !std::exchange(is_block_shown_, true)) {
    const Layout layout = lay_out(block_->prompt, block_->text, block_->cursor, screen_.size().n_columns);
    out_ += screen_.show(layout, block_->look);
  }
  for (std::string_view left = out_; !left.empty();) {
    const ssize_t n = ::write(STDOUT_FILENO, left.data(), left.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {  // somebody made it so; it will be taken in time
      pollfd watched{STDOUT_FILENO, POLLOUT, 0};
      poll(&watched, 1, -1);
      continue;
    }
    if (n <= 0) return false;
    left.remove_prefix(static_cast<std::size_t>(n));
  }
  out_.clear();
  return true;
}

void Terminal::suspend() {
  const std::optional<Block> block = block_;
  hide();
  end_line();
  flush();
  TerminalMode::give_back();
  TerminalSignals::suspend();
  (void)signals_.take();
  block_ = block;
  begin_anew();
}

}  // namespace fermata::chat
