#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace fermata::cli {

// Escape codes for a stream, or nothing where it is no terminal (or NO_COLOR is set, or TERM is dumb).
class Style {
 public:
  explicit Style(int file_descriptor);
  std::string bold(std::string_view text) const { return wrap("1", text); }
  std::string dim(std::string_view text) const { return wrap("2", text); }
  std::string green(std::string_view text) const { return wrap("32", text); }
  std::string red(std::string_view text) const { return wrap("31", text); }
  std::string yellow(std::string_view text) const { return wrap("33", text); }
  bool on() const { return on_; }

 private:
  std::string wrap(const char* code, std::string_view text) const;
  bool on_;
};

// On a terminal a line that is overwritten as work goes on; elsewhere three whole lines, at 0, 50 and 100 %.
class ProgressLine {
 public:
  explicit ProgressLine(std::string what, std::FILE* out = stderr);
  ~ProgressLine();
  void show(float done);            // 0 .. 1
  void say(std::string_view line);  // in its place, on a terminal alone

 private:
  std::string what_;
  std::FILE* out_;
  bool terminal_;
  int last_shown_ = -1;
};

// Text with control characters made visible, quoted: for tables of tokens.
std::string quoted(std::string_view text);

}  // namespace fermata::cli
