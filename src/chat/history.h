#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fermata::chat {

// What was asked before, oldest first, in memory and in a file: a first line that says what it is, then a JSON string
// on a line of its own for each entry. Readable by its owner alone, at most kHistoryEntriesMax entries and
// kHistoryBytesMax bytes, replaced as a whole so that it is never half-written. Several talks may share it.
class History {
 public:
  // An empty path: in memory alone.
  explicit History(std::string path = {}) : path_(std::move(path)) {}

  // What the file has. An error: it is damaged or cannot be read, and is as good as empty.
  Result<void> load();

  // Adds an entry, unless it is the last one again. An error: it is kept in memory alone.
  Result<void> add(std::string_view entry);

  const std::vector<std::string>& entries() const { return entries_; }

  // $XDG_STATE_HOME/fermata/history, by default in ~/.local/state; empty if there is no home.
  static std::string usual_path();

 private:
  std::string path_;
  std::vector<std::string> entries_;
};

// The two formats, pure. kInvalidArgument: this is no history.
Result<std::vector<std::string>> history_of(std::string_view file);
std::string file_of(const std::vector<std::string>& entries);  // the newest that fit

}  // namespace fermata::chat
