#include "server/key_file.h"

#include <sys/stat.h>

namespace fermata {

KeyFile::Mark KeyFile::look() const {
  struct stat status {};
  if (stat(path_.c_str(), &status) != 0) return {};
  return {static_cast<std::int64_t>(status.st_dev),
          static_cast<std::int64_t>(status.st_ino),
          status.st_size,
          status.st_mtim.tv_sec,
          status.st_mtim.tv_nsec,
          status.st_ctim.tv_sec,
          status.st_ctim.tv_nsec};
}

Result<std::shared_ptr<const api::ApiKeys>> KeyFile::read() {
  read_ = seen_ = look();  // before: what changes meanwhile is seen as a change
  Result<api::ApiKeys> keys = api::ApiKeys::load(path_);
  if (!keys) return keys.error();
  return std::make_shared<const api::ApiKeys>(*std::move(keys));
}

bool KeyFile::is_changed() {
  const Mark now = look();
  const bool is_at_rest = std::exchange(seen_, now) == now;
  return is_at_rest && now != read_;
}

}  // namespace fermata
