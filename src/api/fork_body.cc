#include "api/fork_body.h"

#include <utility>

#include "api/control_body.h"
#include "api/openai/call_parts.h"
#include "base/limits.h"

namespace fermata::api {
namespace {

std::optional<ForkBody::Branch> read_branch(const json::value& value, const std::string& path, Complaints& complaints) {
  if (!value.is_object()) {
    complaints.add({Code::kInvalidArgument, path + " must be an object", in_words(value), false, path});
    return std::nullopt;
  }
  FieldReader fields(value.get_object(), path, complaints);
  ForkBody::Branch branch;
  if (const auto seed = fields.integer("seed", 0, INT64_MAX)) branch.seed = static_cast<std::uint64_t>(*seed);
  branch.edits = read_edits(fields);
  for (const std::string_view later : {"inject", "overrides"})
    if (fields.any(later)) fields.complain(later, "is not supported yet");
  fields.refuse_unread();
  return branch;
}

void read_branches(FieldReader& fields, ForkBody& fork) {
  const json::array* branches = fields.array("branches");
  if (!branches) {
    fork.branches.emplace_back();
    return;
  }
  if (branches->empty()) fields.complain("branches", "must have at least one");
  if (branches->size() > limits::kBranchesMax)
    return fields.too_large("branches", branches->size(), limits::kBranchesMax, "branches");
  for (std::size_t i = 0; i < branches->size(); ++i) {
    const std::string path = "branches[" + std::to_string(i) + "]";
    if (auto branch = read_branch((*branches)[i], path, fields.complaints()))
      fork.branches.push_back(*std::move(branch));
  }
}

}  // namespace

Result<ForkBody> parse_fork(std::string_view body) {
  const Result<json::object> object = parse_control(body, limits::kEditBodyBytesMax);
  if (!object) return object.error();
  ForkBody fork;
  Complaints complaints;
  FieldReader fields(*object, "", complaints);
  fork.at = read_place(fields, "at");
  read_branches(fields, fork);
  fork.resume = fields.boolean("resume").value_or(true);
  fields.refuse_unread();
  if (complaints.any()) return complaints.first();
  return fork;
}

}  // namespace fermata::api
