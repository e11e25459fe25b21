#pragma once

#include <string>

#include "base/regular_file.h"
#include "base/result.h"

namespace fermata {

// A file that is written beside its target ("TARGET.part-PID-N") and takes the target's name when it is whole; else it
// goes. It is locked while its owner lives, and the lock ends with the process: what a killed run left behind is known
// by its free lock and removed by the next make() for the same target, while two runs at once leave each other alone.
class ScratchFile {
 public:
  // kIo if nothing can be written there.
  static Result<ScratchFile> make(const std::string& target);
  ScratchFile(ScratchFile&& other) noexcept = default;
  ScratchFile& operator=(ScratchFile&&) = delete;
  ~ScratchFile();

  const std::string& path() const { return path_; }
  const Descriptor& descriptor() const { return descriptor_; }
  // To the disk, so that a power cut after put_in_place() does not leave an empty target.
  Result<void> flush() const;
  // Renames; an existing target is replaced. May be called once.
  Result<void> put_in_place();

 private:
  ScratchFile(std::string target, std::string path, Descriptor descriptor);

  std::string target_;
  std::string path_;
  Descriptor descriptor_;  // closed: it was put in place, or moved away
};

}  // namespace fermata
