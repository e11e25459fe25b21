#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "api/edit_body.h"
#include "base/result.h"

namespace fermata::api {

// The body of a fork.
struct ForkBody {
  struct Branch {
    std::optional<std::uint64_t> seed;
    std::vector<Edit> edits;  // of the parent's journal, before `at`
  };
  std::optional<Place> at;  // none: where it stands
  std::vector<Branch> branches;
  bool resume = true;
  // One that differs from its parent in nothing goes on with its parent's randomness; others get some of their own.
  bool is_exact_copy(const Branch& branch) const {
    return branches.size() == 1 && !branch.seed && branch.edits.empty();
  }
};

// The errors are the client's to read. Without `branches`: one.
Result<ForkBody> parse_fork(std::string_view body);

}  // namespace fermata::api
