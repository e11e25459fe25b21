#include "server/line_writer.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace fermata {
namespace {

// Properties of Linux, not limits of ours. A pipe that is ready takes so much without blocking (PIPE_BUF), and does not
// tear it apart.
constexpr std::size_t kWriteBytes = 4096;
// A terminal that is ready takes this much (n_tty of Linux); more would block though it is ready.
constexpr std::size_t kTerminalBytes = 256;

std::uint64_t n_lines(std::string_view text) { return static_cast<std::uint64_t>(std::ranges::count(text, '\n')); }

}  // namespace

Descriptor without_blocking(int descriptor) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || (!S_ISFIFO(status.st_mode) && isatty(descriptor) == 0)) return Descriptor();
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  return Descriptor(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

LineWriter::LineWriter(int descriptor, TellLost tell_lost)
    : tell_lost_(std::move(tell_lost)),
      own_(without_blocking(descriptor)),
      descriptor_(own_.is_open() ? own_.number() : descriptor),
      writer_([this] { write_all(); }) {}

LineWriter::~LineWriter() {
  is_ending_ = true;
  lines_.close();
  writer_.join();
}

void LineWriter::put(std::string lines) {
  const std::uint64_t n = n_lines(lines);
  if (!lines_.push(std::move(lines))) count_lost(n);
}

void LineWriter::count_lost(std::uint64_t n) {
  n_lost_ += n;
  n_untold_ += n;
}

void LineWriter::write_all() {
  // A reader that is gone ends no server.
  sigset_t broken_pipe;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
  std::string batch;
  while (!lines_.closed_and_empty()) {
    std::optional<std::string> lines = lines_.pop(seconds(3600));
    for (; lines; lines = lines_.try_pop()) {
      if (!batch.empty() && batch.size() + lines->size() > kWriteBytes) write_out(std::exchange(batch, {}));
      batch += *lines;
    }
    write_out(std::exchange(batch, {}));
    tell_lost();
  }
}

void LineWriter::tell_lost() {
  if (!tell_lost_ || !can_write_) return;
  const std::uint64_t n = n_untold_.exchange(0);
  if (n == 0) return;
  const std::string told = tell_lost_(n, std::exchange(error_, 0));
  std::string_view left = told;
  can_write_ = write_bytes(left);
  if (!can_write_) n_untold_ += n;
}

void LineWriter::write_out(std::string_view lines) {
  if (lines.empty()) return;
  std::string_view end_of_torn = last_byte_ == '\n' ? "" : "\n";
  can_write_ = write_bytes(end_of_torn) && write_bytes(lines);
  if (!can_write_) count_lost(n_lines(lines));
}

// True: all. Else `bytes` is what is left, and error_ says why unless there was no more time.
bool LineWriter::write_bytes(std::string_view& bytes) {
  const SystemClock clock;
  while (!bytes.empty()) {
    if (is_ending_ && !ends_by_) ends_by_ = clock.now() + milliseconds(limits::kWriterCloseMs);
    if (ends_by_ && clock.now() >= *ends_by_) return false;
    pollfd watched{descriptor_, POLLOUT, 0};
    if (poll(&watched, 1, static_cast<int>(limits::kWriterLookMs)) <= 0) continue;
    const std::size_t n_max = isatty(descriptor_) ? kTerminalBytes : kWriteBytes;
    const ssize_t n = write(descriptor_, bytes.data(), std::min(bytes.size(), n_max));
    if (n > 0) {
      last_byte_ = bytes[static_cast<std::size_t>(n) - 1];
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else if (n < 0 && errno != EINTR && errno != EAGAIN) {
      error_ = errno;
      return false;
    }
  }
  return true;
}

}  // namespace fermata
