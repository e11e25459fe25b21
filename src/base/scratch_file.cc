#include "base/scratch_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace fermata {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = ".part-";
constexpr int kNamesMax = 64;  // tried by one process for one target

Error cannot_write(const std::string& path, int error) {
  return Error{Code::kIo, path + " cannot be written", std::strerror(error), false};
}

bool has_only_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// "TARGET.part-123-0"
bool is_scratch_of(const std::string& name, const std::string& target_name) {
  if (!name.starts_with(target_name + std::string(kMark))) return false;
  const std::string_view rest = std::string_view(name).substr(target_name.size() + kMark.size());
  const std::size_t dash = rest.find('-');
  return dash != std::string_view::npos && has_only_digits(rest.substr(0, dash)) &&
         has_only_digits(rest.substr(dash + 1));
}

// Whether the name still leads to the open file: somebody may have removed it, and even made another.
bool is_still_at(const std::string& path, int descriptor) {
  struct stat named {};
  struct stat opened {};
  return lstat(path.c_str(), &named) == 0 && fstat(descriptor, &opened) == 0 && named.st_dev == opened.st_dev &&
         named.st_ino == opened.st_ino;
}

void remove_if_abandoned(const std::string& path) {
  const Result<RegularFile> file = open_regular_file(path);
  if (!file || flock(file->descriptor.number(), LOCK_EX | LOCK_NB) != 0) return;
  if (is_still_at(path, file->descriptor.number())) unlink(path.c_str());
}

void remove_abandoned(const fs::path& folder, const std::string& target_name) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (is_scratch_of(entry->path().filename().string(), target_name)) remove_if_abandoned(entry->path().string());
}

}  // namespace

ScratchFile::ScratchFile(std::string target, std::string path, Descriptor descriptor)
    : target_(std::move(target)), path_(std::move(path)), descriptor_(std::move(descriptor)) {}

Result<ScratchFile> ScratchFile::make(const std::string& target) {
  const fs::path folder = fs::path(target).parent_path();
  remove_abandoned(folder.empty() ? fs::path(".") : folder, fs::path(target).filename().string());
  const std::string stem = target + std::string(kMark) + std::to_string(getpid()) + "-";
  for (int i = 0; i < kNamesMax; ++i) {
    std::string path = stem + std::to_string(i);
    Descriptor descriptor(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!descriptor.is_open() && errno == EEXIST) continue;
    if (!descriptor.is_open()) return cannot_write(path, errno);
    // Another run that looks for abandoned files may have found this one before it was locked. Where the file system
    // knows no locks nobody can take it for abandoned either.
    flock(descriptor.number(), LOCK_EX);
    if (is_still_at(path, descriptor.number())) return ScratchFile(target, std::move(path), std::move(descriptor));
  }
  return cannot_write(stem + "0", EEXIST);
}

ScratchFile::~ScratchFile() {
  if (descriptor_.is_open()) unlink(path_.c_str());
}

Result<void> ScratchFile::flush() const {
  if (fsync(descriptor_.number()) != 0) return cannot_write(path_, errno);
  return {};
}

Result<void> ScratchFile::put_in_place() {
  if (std::rename(path_.c_str(), target_.c_str()) != 0) return cannot_write(target_, errno);
  descriptor_ = Descriptor();
  return {};
}

}  // namespace fermata
