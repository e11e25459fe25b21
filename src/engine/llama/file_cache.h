#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fermata {

// Small facts that are dear to work out and safe to lose (the digest of a model's weights, the verdict of its
// self-test), one per line in files under $XDG_CACHE_HOME/fermata or ~/.cache/fermata. A missing, unreadable or damaged
// cache is an empty one; writers replace a file atomically, the last one wins.
class FileCache {
 public:
  // `name`: of the file. `directory` empty: the user's cache folder.
  explicit FileCache(std::string name, std::string directory = {});
  std::optional<std::string> find(std::string_view key) const;
  // Values hold no line breaks; keys hold neither those nor tabs.
  void put(std::string_view key, std::string_view value) const;

  static constexpr std::size_t kEntriesMax = 256;  // the oldest go first

 private:
  std::string path_;  // empty: no place to keep anything
};

}  // namespace fermata
