#include "engine/llama/file_cache.h"

#include <unistd.h>

#include <cstdlib>
#include <deque>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "base/regular_file.h"
#include "base/scratch_file.h"

namespace fermata {
namespace {

constexpr std::size_t kFileBytesMax = 1 << 20;  // what is beyond is damage

std::string user_cache_directory() {
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  if (xdg != nullptr && xdg[0] == '/') return std::string(xdg) + "/fermata";
  const char* home = std::getenv("HOME");
  return home != nullptr && home[0] == '/' ? std::string(home) + "/.cache/fermata" : std::string();
}

std::string one_line(std::string_view text, bool tabs_too) {
  std::string line(text);
  for (char& c : line)
    if (c == '\n' || c == '\r' || (tabs_too && c == '\t')) c = ' ';
  return line;
}

std::deque<std::string> read_lines(const std::string& path) {
  std::deque<std::string> lines;
  const Result<RegularFile> file = open_regular_file(path);
  if (!file || file->n_bytes > kFileBytesMax) return lines;
  std::string text(file->n_bytes, '\0');
  const ssize_t n = pread(file->descriptor.number(), text.data(), text.size(), 0);
  if (n < 0) return lines;
  text.resize(static_cast<std::size_t>(n));
  std::istringstream stream(std::move(text));
  std::string line;
  while (lines.size() < 2 * FileCache::kEntriesMax && std::getline(stream, line)) lines.push_back(line);
  return lines;
}

}  // namespace

FileCache::FileCache(std::string name, std::string directory) {
  if (directory.empty()) directory = user_cache_directory();
  if (!directory.empty()) path_ = directory + "/" + std::move(name);
}

std::optional<std::string> FileCache::find(std::string_view key) const {
  if (path_.empty()) return std::nullopt;
  const std::string head = one_line(key, true) + '\t';
  for (const std::string& line : read_lines(path_))
    if (line.starts_with(head)) return line.substr(head.size());
  return std::nullopt;
}

void FileCache::put(std::string_view key, std::string_view value) const {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
  const std::string head = one_line(key, true) + '\t';
  auto lines = read_lines(path_);
  std::erase_if(lines, [&](const std::string& line) { return line.starts_with(head); });
  lines.push_back(head + one_line(value, false));
  while (lines.size() > kEntriesMax) lines.pop_front();
  std::string text;
  for (const std::string& kept : lines) text += kept + '\n';
  Result<ScratchFile> fresh = ScratchFile::make(path_);
  // What cannot be kept is worked out again next time.
  if (fresh && write_whole(fresh->descriptor(), text)) static_cast<void>(fresh->put_in_place());
}

}  // namespace fermata
