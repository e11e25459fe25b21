#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "base/limits.h"
#include "base/regular_file.h"
#include "base/ring.h"

namespace fermata {

// A pipe or terminal opened anew, so that it never blocks, even if others write to it between a look and a write; to
// make the given one so would make it so for everybody who has it. Not open: it is neither, or cannot be opened.
Descriptor without_blocking(int descriptor);

// Lines to a descriptor, in order, by a thread of its own. A reader that does not read or is gone, and a disk that is
// full, cost nobody any time and end nothing; they cost lines, which are counted. One thread puts, and lives shorter
// than this.
class LineWriter {
 public:
  // Says so in a line of its own, which is written behind the next lines that can be. `error`: errno of the last write
  // that failed; 0: they were not read in time.
  using TellLost = std::function<std::string(std::uint64_t n_lost, int error)>;

  explicit LineWriter(int descriptor, TellLost tell_lost = {});
  ~LineWriter();  // what was put is written, unless that takes kWriterCloseMs
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  void put(std::string lines);  // each with its end
  std::uint64_t n_lost() const { return n_lost_.load(); }

 private:
  void write_all();
  void write_out(std::string_view lines);
  bool write_bytes(std::string_view& bytes);
  void tell_lost();
  void count_lost(std::uint64_t n);

  const TellLost tell_lost_;
  const Descriptor own_;  // of what never blocks, if it can be had
  const int descriptor_;
  Ring<std::string> lines_{limits::kWriterLinesMax};
  std::atomic<std::uint64_t> n_lost_{0};
  std::atomic<std::uint64_t> n_untold_{0};  // of them
  std::atomic<bool> is_ending_{false};
  // Of the writer.
  std::optional<Instant> ends_by_;  // what is not written by then is lost
  int error_ = 0;
  bool can_write_ = true;  // as far as the last write knows
  char last_byte_ = '\n';  // that was written
  std::thread writer_;
};

}  // namespace fermata
