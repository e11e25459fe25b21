#include "cli/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace fermata::cli {
namespace {

bool shows_escape_codes(int file_descriptor) {
  const char* term = std::getenv("TERM");
  const char* no_color = std::getenv("NO_COLOR");
  return isatty(file_descriptor) && !(no_color && *no_color) && term && std::strcmp(term, "dumb") != 0;
}

}  // namespace

Style::Style(int file_descriptor) : on_(shows_escape_codes(file_descriptor)) {}

std::string Style::wrap(const char* code, std::string_view text) const {
  if (!on_) return std::string(text);
  return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
}

ProgressLine::ProgressLine(std::string what, std::FILE* out)
    : what_(std::move(what)), out_(out), terminal_(shows_escape_codes(fileno(out))) {}

ProgressLine::~ProgressLine() {
  if (terminal_ && last_shown_ >= 0) std::fputs("\r\x1b[K", out_);
}

void ProgressLine::show(float done) {
  const int step = terminal_ ? 1 : 50;  // percent
  const int shown = static_cast<int>(done * 100.0f) / step * step;
  // A model that is loaded a second time, other kernels chosen, begins anew: lines that stay are not said twice.
  if (terminal_ ? shown == last_shown_ : shown <= last_shown_) return;
  last_shown_ = shown;
  std::fprintf(out_, terminal_ ? "\r\x1b[K%s %d %%" : "%s %d %%\n", what_.c_str(), shown);
  std::fflush(out_);
}

void ProgressLine::say(std::string_view line) {
  if (!terminal_) return;
  std::fprintf(out_, "\r\x1b[K%.*s", static_cast<int>(line.size()), line.data());
  std::fflush(out_);
  last_shown_ = std::max(last_shown_, 0);
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
