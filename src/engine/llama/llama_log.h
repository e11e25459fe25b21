#pragma once

#include <string>

namespace fermata {

// libllama and ggml write their log through one process-wide callback. This takes it over: nothing reaches the
// terminal, the latest warnings and errors are kept as evidence for Error.detail. Thread-safe.
class LlamaLog {
 public:
  // Idempotent; called before anything else of libllama.
  static void capture();
  // Forgets what was kept.
  static void clear();
  // The kept lines, newest last, joined by "; ". At most kLinesMax lines of kLineBytesMax bytes.
  static std::string recent();

  static constexpr std::size_t kLinesMax = 8;
  static constexpr std::size_t kLineBytesMax = 400;
};

}  // namespace fermata
