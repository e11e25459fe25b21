#include "cli/complain.h"

#include <cstdio>

#include "cli/exit_codes.h"
#include "engine/llama/json_text.h"

namespace fermata::cli {

int complain(const Error& error) {
  // Details quote what a file or a request says; that may be anything, also what the message says already.
  const bool is_said = error.message.find(error.detail) != std::string::npos;
  std::fprintf(stderr, "fermata: %s%s%s\n", printable(error.message).c_str(), is_said ? "" : ": ",
               is_said ? "" : printable(error.detail).c_str());
  return exit_code_for(error.code);
}

}  // namespace fermata::cli
