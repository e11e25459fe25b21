#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/result.h"

namespace fermata {

// A descriptor that is closed with its owner.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor();

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

// Who may do what with a file.
struct FilePermissions {
  std::uint32_t mode = 0;  // 0600
  std::uint32_t owner = 0;
  std::uint32_t group = 0;
  bool others_may_write() const { return (mode & 022) != 0; }  // its group, or everybody
};

struct RegularFile {
  Descriptor descriptor;
  std::uint64_t n_bytes = 0;
  FilePermissions permissions;
};

// Opens a file of ours, or one that a user named, for reading. Never waits for anybody: a pipe, device, socket or
// folder is refused (kIo), a link to a regular file is followed. kNotFound: there is none. The message begins with
// `path`.
Result<RegularFile> open_regular_file(const std::string& path);

// What is left to read of a descriptor: kTooLarge if that is more than `n_bytes_max`, kIo if it cannot be read. `name`
// begins the message. Waits if the descriptor does.
Result<std::string> read_to_end(const Descriptor& descriptor, const std::string& name, std::size_t n_bytes_max);

// The whole of a regular file.
Result<std::string> read_regular_file(const std::string& path, std::size_t n_bytes_max);

// All of the bytes, also where the system takes them piece by piece. False: errno says why.
bool write_whole(const Descriptor& descriptor, std::string_view bytes);

}  // namespace fermata
