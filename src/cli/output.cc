#include "cli/output.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/limits.h"

namespace fermata::cli {

void hold_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is taken: this one, since those below it are held. Opened the wrong way round.
    static_cast<void>(open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY));
  }
}

void give_threads_room() {
  pthread_attr_t attributes;
  std::size_t n_bytes = 0;
  if (pthread_getattr_default_np(&attributes) != 0) return;
  pthread_attr_getstacksize(&attributes, &n_bytes);
  if (n_bytes < limits::kStackBytesLeast && pthread_attr_setstacksize(&attributes, limits::kStackBytesLeast) == 0)
    pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
}

Result<void> flush_output() {
  errno = 0;
  const bool is_written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (is_written) return {};
  return Error{Code::kIo, "standard output could not be written", errno != 0 ? std::strerror(errno) : "", false};
}

}  // namespace fermata::cli
