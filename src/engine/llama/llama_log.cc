#include "engine/llama/llama_log.h"

#include <deque>
#include <mutex>
#include <string_view>

#include "llama.h"

namespace fermata {
namespace {

struct Kept {
  std::mutex mutex;
  std::deque<std::string> lines;
  std::string open;  // a line that has no end yet
  bool open_matters = false;
};

Kept& kept() {
  static Kept* instance = new Kept;  // never destroyed: libllama may log while the process ends
  return *instance;
}

void add_text(ggml_log_level level, const char* text, void*) {
  if (level == GGML_LOG_LEVEL_DEBUG || level == GGML_LOG_LEVEL_INFO || text == nullptr) return;
  Kept& log = kept();
  std::lock_guard lock(log.mutex);
  if (level != GGML_LOG_LEVEL_CONT) log.open_matters = true;
  if (!log.open_matters) return;
  for (const char c : std::string_view(text)) {
    if (c != '\n') {
      if (log.open.size() < LlamaLog::kLineBytesMax) log.open += c;
      continue;
    }
    if (!log.open.empty()) log.lines.push_back(std::move(log.open));
    log.open.clear();
    log.open_matters = false;
    if (log.lines.size() > LlamaLog::kLinesMax) log.lines.pop_front();
  }
}

}  // namespace

void LlamaLog::capture() { llama_log_set(add_text, nullptr); }

void LlamaLog::clear() {
  std::lock_guard lock(kept().mutex);
  kept().lines.clear();
  kept().open.clear();
}

std::string LlamaLog::recent() {
  std::lock_guard lock(kept().mutex);
  std::string joined;
  for (const std::string& line : kept().lines) joined += (joined.empty() ? "" : "; ") + line;
  return joined;
}

}  // namespace fermata
