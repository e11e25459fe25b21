#include "cli/input_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/llama/regular_file.h"

namespace fermata::cli {
namespace {

Result<std::string> read_all(int descriptor, const std::string& name, std::size_t n_bytes_max) {
  std::string text;
  char buffer[65536];
  while (true) {
    const ssize_t n = read(descriptor, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error{Code::kInvalidArgument, name + " cannot be read", std::strerror(errno), false};
    if (n == 0) return text;
    text.append(buffer, static_cast<std::size_t>(n));
    if (text.size() > n_bytes_max)
      return Error{Code::kTooLarge, name + " is longer than is allowed", std::to_string(n_bytes_max) + " bytes", false};
  }
}

}  // namespace

Result<std::string> read_input(const std::string& path, std::size_t n_bytes_max) {
  if (path != "-") {
    const Result<RegularFile> file = open_regular_file(path);
    if (!file) return Error{Code::kInvalidArgument, file.error().message, file.error().detail, false};
    return read_all(file->descriptor.number(), path, n_bytes_max);
  }
  // Whatever it is, somebody chose it: a pipe and a terminal are waited for.
  struct stat status {};
  if (fstat(STDIN_FILENO, &status) == 0 && S_ISDIR(status.st_mode))
    return Error{Code::kInvalidArgument, "standard input is a folder", {}, false};
  return read_all(STDIN_FILENO, "standard input", n_bytes_max);
}

}  // namespace fermata::cli
