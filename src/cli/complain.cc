#include "cli/complain.h"

#include <cstdio>

#include "cli/exit_codes.h"

namespace fermata::cli {

int complain(const Error& error) {
  std::fprintf(stderr, "fermata: %s%s%s\n", error.message.c_str(), error.detail.empty() ? "" : ": ",
               error.detail.c_str());
  return exit_code_for(error.code);
}

}  // namespace fermata::cli
