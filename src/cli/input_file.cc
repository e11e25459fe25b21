#include "cli/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace fermata::cli {
namespace {

struct Descriptor {
  int number;
  bool owned;
  ~Descriptor() {
    if (owned && number >= 0) close(number);
  }
};

}  // namespace

Result<std::string> read_input(const std::string& path, std::size_t n_bytes_max) {
  const bool is_stdin = path == "-";
  const Descriptor file{is_stdin ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC), !is_stdin};
  const std::string name = is_stdin ? "standard input" : path;
  struct stat status {};
  if (file.number < 0 || fstat(file.number, &status) != 0)
    return Error{Code::kInvalidArgument, name + " cannot be read", std::strerror(errno), false};
  if (S_ISDIR(status.st_mode) || (!is_stdin && !S_ISREG(status.st_mode)))
    return Error{Code::kInvalidArgument, name + " is not a regular file", {}, false};
  std::string text;
  char buffer[65536];
  while (true) {
    const ssize_t n = read(file.number, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error{Code::kInvalidArgument, name + " cannot be read", std::strerror(errno), false};
    if (n == 0) return text;
    text.append(buffer, static_cast<std::size_t>(n));
    if (text.size() > n_bytes_max)
      return Error{Code::kTooLarge, name + " is longer than is allowed", std::to_string(n_bytes_max) + " bytes", false};
  }
}

}  // namespace fermata::cli
