#include "cli/input_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "base/regular_file.h"

namespace fermata::cli {
namespace {

bool is_of_the_name(Code code) { return code == Code::kIo || code == Code::kNotFound; }

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t n_bytes_max) {
  Result<std::string> text = read_regular_file(path, n_bytes_max);
  if (text || !is_of_the_name(text.error().code)) return text;
  return Error{Code::kInvalidArgument, text.error().message, text.error().detail, false};  // the user named it
}

Result<std::string> read_input(const std::string& path, std::size_t n_bytes_max) {
  if (path != "-") return read_file(path, n_bytes_max);
  // Whatever it is, somebody chose it: a pipe and a terminal are waited for.
  struct stat status {};
  if (fstat(STDIN_FILENO, &status) == 0 && S_ISDIR(status.st_mode))
    return Error{Code::kInvalidArgument, "standard input is a folder", {}, false};
  Descriptor input(STDIN_FILENO);
  Result<std::string> text = read_to_end(input, "standard input", n_bytes_max);
  (void)input.release();  // it stays open
  if (text || text.error().code != Code::kIo) return text;
  return Error{Code::kInvalidArgument, text.error().message, text.error().detail, false};
}

bool is_blank(const std::string& text) { return text.find_first_not_of(" \t\r\n") == std::string::npos; }

}  // namespace fermata::cli
