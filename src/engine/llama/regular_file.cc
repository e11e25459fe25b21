#include "engine/llama/regular_file.h"

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
  RegularFile file{Descriptor(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC))};
  struct stat status {};
  if (!file.descriptor.is_open() || fstat(file.descriptor.number(), &status) != 0)
    return Error{Code::kIo, path + " cannot be opened", std::strerror(errno), false};
  if (!S_ISREG(status.st_mode)) return Error{Code::kIo, path + " is not a regular file", {}, false};
  file.n_bytes = static_cast<std::uint64_t>(status.st_size);
  return file;
}

}  // namespace fermata
