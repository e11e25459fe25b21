#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "api/http/api_keys.h"
#include "base/result.h"

namespace fermata {

// The file of API keys, and whether it is another one than was read last. io thread.
class KeyFile {
 public:
  explicit KeyFile(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  Result<std::shared_ptr<const api::ApiKeys>> read();
  // To be asked now and then: true once for each change, when two looks in a row found the same, so that a file that is
  // being written is left alone. One that is not there is a change too.
  bool is_changed();

 private:
  // Device, number, size, times of change; zeros: it is not there.
  using Mark = std::array<std::int64_t, 7>;
  Mark look() const;

  std::string path_;
  Mark read_{};
  Mark seen_{};
};

}  // namespace fermata
