#include "base/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace fermata {

Descriptor::~Descriptor() {
  if (is_open()) close(number_);
}

Result<RegularFile> open_regular_file(const std::string& path) {
  // O_NONBLOCK: opening a pipe does not wait for its writer. It means nothing to a regular file.
  RegularFile file{Descriptor(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)), 0, {}};
  struct stat status {};
  if (!file.descriptor.is_open() || fstat(file.descriptor.number(), &status) != 0)
    return Error{errno == ENOENT ? Code::kNotFound : Code::kIo, path + " cannot be opened", std::strerror(errno),
                 false};
  if (!S_ISREG(status.st_mode)) return Error{Code::kIo, path + " is not a regular file", {}, false};
  file.n_bytes = static_cast<std::uint64_t>(status.st_size);
  file.permissions = {status.st_mode & 0777, status.st_uid, status.st_gid};
  return file;
}

Result<std::string> read_to_end(const Descriptor& descriptor, const std::string& name, std::size_t n_bytes_max) {
  std::string text;
  char buffer[65536];
  while (true) {
    const ssize_t n = read(descriptor.number(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error{Code::kIo, name + " cannot be read", std::strerror(errno), false};
    if (n == 0) return text;
    text.append(buffer, static_cast<std::size_t>(n));
    if (text.size() > n_bytes_max)
      return Error{Code::kTooLarge, name + " is longer than is allowed", std::to_string(n_bytes_max) + " bytes", false};
  }
}

Result<std::string> read_regular_file(const std::string& path, std::size_t n_bytes_max) {
  const Result<RegularFile> file = open_regular_file(path);
  if (!file) return file.error();
  return read_to_end(file->descriptor, path, n_bytes_max);
}

bool write_whole(const Descriptor& descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(descriptor.number(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace fermata
