#pragma once

#include <cstdint>

namespace fermata {

// What the kernel says of this process; 0 for what it does not say.
struct ProcessFigures {
  double cpu_s = 0;           // user and system, of all threads
  double started_unix_s = 0;  // seconds since 1970
  std::uint64_t n_bytes = 0;  // resident
  std::uint64_t n_files = 0;  // open
  std::uint64_t n_files_max = 0;
  std::uint64_t n_threads = 0;
};
ProcessFigures process_figures();

}  // namespace fermata
