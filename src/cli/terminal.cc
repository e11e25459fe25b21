#include "cli/terminal.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace fermata::cli {
namespace {

bool shows_escape_codes(int file_descriptor) {
  const char* term = std::getenv("TERM");
  return isatty(file_descriptor) && !std::getenv("NO_COLOR") && term && std::strcmp(term, "dumb") != 0;
}

}  // namespace

Style::Style(int file_descriptor) : on_(shows_escape_codes(file_descriptor)) {}

std::string Style::wrap(const char* code, std::string_view text) const {
  if (!on_) return std::string(text);
  return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
}

ProgressLine::ProgressLine(std::string what) : what_(std::move(what)), terminal_(shows_escape_codes(STDERR_FILENO)) {}

ProgressLine::~ProgressLine() {
  if (terminal_ && last_shown_ >= 0) std::fputs("\r\x1b[K", stderr);
}

void ProgressLine::show(float done) {
  const int shown = static_cast<int>(done * (terminal_ ? 100.0f : 10.0f));
  if (shown == last_shown_) return;
  last_shown_ = shown;
  if (terminal_)
    std::fprintf(stderr, "\r\x1b[K%s %d %%", what_.c_str(), shown);
  else
    std::fprintf(stderr, "%s %d %%\n", what_.c_str(), shown * 10);
  std::fflush(stderr);
}

std::string quoted(std::string_view text) {
  std::string shown = "\"";
  for (const char c : text) {
    if (c == '\n')
      shown += "\\n";
    else if (c == '"' || c == '\\')
      shown += std::string("\\") + c;
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      shown += "\\x" + std::string(1, "0123456789abcdef"[(c >> 4) & 15]) + "0123456789abcdef"[c & 15];
    else
      shown += c;
  }
  return shown + "\"";
}

}  // namespace fermata::cli
