#include "engine/llama/file_cache.h"

#include <unistd.h>

#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace fermata {
namespace {

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
  std::ifstream file(path);
  std::string line;
  while (lines.size() < 2 * FileCache::kEntriesMax && std::getline(file, line)) lines.push_back(line);
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
  const std::string fresh = path_ + "." + std::to_string(getpid());
  {
    std::ofstream file(fresh, std::ios::trunc);
    for (const std::string& line : lines) file << line << '\n';
    if (!file.flush()) {
      std::filesystem::remove(fresh, ignored);
      return;
    }
  }
  std::filesystem::rename(fresh, path_, ignored);
}

}  // namespace fermata
