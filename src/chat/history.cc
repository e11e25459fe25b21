#include "chat/history.h"

#include <sys/stat.h>
#include <unistd.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/limits.h"
#include "base/regular_file.h"
#include "base/scratch_file.h"

namespace fermata::chat {
namespace {

namespace json = boost::json;

constexpr std::string_view kFirstLine = "fermata history 1\n";

void append(std::vector<std::string>& entries, std::string_view entry) {
  if (!entries.empty() && entries.back() == entry) return;
  entries.emplace_back(entry);
  if (entries.size() > limits::kHistoryEntriesMax) entries.erase(entries.begin());
}

Error not_written(const std::string& path, std::string why) {
  return {Code::kIo, path + " cannot be written; --no-history does without", std::move(why), false};
}

Result<void> replace_file(const std::string& path, const std::string& text) {
  Result<ScratchFile> scratch = ScratchFile::make(path);
  if (!scratch) return not_written(path, scratch.error().detail);
  const bool is_written = fchmod(scratch->descriptor().number(), 0600) == 0 && write_whole(scratch->descriptor(), text);
  if (!is_written) return not_written(path, std::strerror(errno));
  const Result<void> placed = scratch->put_in_place();
  return placed ? placed : not_written(path, placed.error().detail);
}

bool is_there(const std::string& path) { return access(path.c_str(), F_OK) == 0 || errno != ENOENT; }

}  // namespace

Result<std::vector<std::string>> history_of(std::string_view file) {
  const Error damaged{Code::kInvalidArgument, "it is damaged", {}, false};
  if (!file.starts_with(kFirstLine)) return damaged;
  file.remove_prefix(kFirstLine.size());
  std::vector<std::string> entries;
  while (!file.empty()) {
    const auto end = file.find('\n');
    if (end == std::string_view::npos) return damaged;
    boost::system::error_code failed;
    const json::value entry = json::parse(json::string_view(file.data(), end), failed);
    if (failed || !entry.is_string()) return damaged;
    append(entries, std::string_view(entry.get_string()));
    file.remove_prefix(end + 1);
  }
  return entries;
}

std::string file_of(const std::vector<std::string>& entries) {
  std::vector<std::string> lines;
  std::size_t n_bytes = kFirstLine.size();
  for (auto entry = entries.rbegin(); entry != entries.rend() && lines.size() < limits::kHistoryEntriesMax; ++entry) {
    lines.push_back(json::serialize(json::string(*entry)) + "\n");
    n_bytes += lines.back().size();
    if (n_bytes <= limits::kHistoryBytesMax) continue;
    n_bytes -= lines.back().size();  // too long: those before it may fit still
    lines.pop_back();
    if (entry != entries.rbegin()) break;
  }
  std::string text(kFirstLine);
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) text += *line;
  return text;
}

Result<void> History::load() {
  if (path_.empty() || !is_there(path_)) return {};
  const Result<std::string> text = read_regular_file(path_, limits::kHistoryBytesMax);
  Result<std::vector<std::string>> entries = text ? history_of(*text) : text.error();
  if (!entries) {
    const std::string why = text ? path_ + " is damaged" : entries.error().message;
    return Error{Code::kIo, why + "; the history begins anew", entries.error().detail, false};
  }
  entries_ = *std::move(entries);
  return {};
}

Result<void> History::add(std::string_view entry) {
  append(entries_, entry);
  if (path_.empty()) return {};
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  std::error_code failed;
  if (std::filesystem::create_directories(folder, failed)) chmod(folder.c_str(), 0700);
  std::vector<std::string> all;  // another talk may have added some
  if (const Result<std::string> text = read_regular_file(path_, limits::kHistoryBytesMax))
    if (Result<std::vector<std::string>> there = history_of(*text)) all = *std::move(there);
  append(all, entry);
  return replace_file(path_, file_of(all));
}

std::string History::usual_path() {
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  if (state != nullptr && *state == '/') return std::string(state) + "/fermata/history";  // relative ones: ignored
  if (home == nullptr || *home == '\0') return {};
  return std::string(home) + "/.local/state/fermata/history";
}

}  // namespace fermata::chat
