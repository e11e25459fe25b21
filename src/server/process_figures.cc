#include "server/process_figures.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace fermata {
namespace {

// The fields of /proc/self/stat that come after the program's name, which may hold anything; proc(5) numbers them from
// 3 on.
std::vector<std::string> stat_fields() {
  std::ifstream file("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream rest(text.substr(name_end + 1));
  return {std::istream_iterator<std::string>(rest), {}};
}

double boot_unix_s() {
  std::ifstream file("/proc/stat");
  for (std::string word; file >> word;) {
    double seconds = 0;
    if (word == "btime" && file >> seconds) return seconds;
  }
  return 0;
}

}  // namespace

ProcessFigures process_figures() {
  ProcessFigures figures;
  const std::vector<std::string> fields = stat_fields();
  const auto field = [&](std::size_t number) { return std::stod(fields[number - 3]); };
  if (fields.size() >= 22) {
    const auto ticks_per_s = static_cast<double>(sysconf(_SC_CLK_TCK));
    figures.cpu_s = (field(14) + field(15)) / ticks_per_s;
    figures.n_threads = static_cast<std::uint64_t>(field(20));
    static const double boot_s = boot_unix_s();  // reading it walks over all of /proc/stat
    figures.started_unix_s = boot_s + field(22) / ticks_per_s;
    figures.n_bytes = static_cast<std::uint64_t>(field(24)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  }
  std::error_code ignored;
  const std::filesystem::directory_iterator files("/proc/self/fd", ignored);
  figures.n_files = static_cast<std::uint64_t>(std::distance(begin(files), end(files)));
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) figures.n_files_max = limit.rlim_cur;
  return figures;
}

}  // namespace fermata
