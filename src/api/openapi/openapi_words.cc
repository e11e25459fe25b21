// What a "=NAME" in src/api/openapi stands for.
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <utility>

#include "api/openapi/openapi_parts.h"
#include "base/check.h"
#include "base/limits.h"
#include "generation/journal.h"
#include "generation/state.h"

namespace fermata::api::openapi {
namespace {

struct Limit {
  std::string_view name;
  std::uint64_t value;
};

constexpr std::array kLimits{
    Limit{"kAlivePerKeyMax", limits::kAlivePerKeyMax},
    Limit{"kCompletionLogprobsMax", limits::kCompletionLogprobsMax},
    Limit{"kDryBreakerBytesMax", limits::kDryBreakerBytesMax},
    Limit{"kDryBreakersMax", limits::kDryBreakersMax},
    Limit{"kFinishedKept", limits::kFinishedKept},
    Limit{"kGrammarBytesMax", limits::kGrammarBytesMax},
    Limit{"kHttpBodyBytesMax", limits::kHttpBodyBytesMax},
    Limit{"kInspectTopDefault", limits::kInspectTopDefault},
    Limit{"kInt32Max", std::numeric_limits<std::int32_t>::max()},
    Limit{"kInt64Max", std::numeric_limits<std::int64_t>::max()},
    Limit{"kListPageDefault", limits::kListPageDefault},
    Limit{"kListPageMax", limits::kListPageMax},
    Limit{"kLogitBiasMax", limits::kLogitBiasMax},
    Limit{"kMessagesMax", limits::kMessagesMax},
    Limit{"kNameBytesMax", limits::kNameBytesMax},
    Limit{"kPauseAgeMaxMs", limits::kPauseAgeMaxMs},
    Limit{"kPausedPerKeyMax", limits::kPausedPerKeyMax},
    Limit{"kPriorityMax", limits::kPriorityMax},
    Limit{"kRequestIdBytesMax", limits::kRequestIdBytesMax},
    Limit{"kSeedMax", std::numeric_limits<std::uint64_t>::max()},
    Limit{"kStopStringBytesMax", limits::kStopStringBytesMax},
    Limit{"kStopStringsMax", limits::kStopStringsMax},
    Limit{"kTagsMax", limits::kTagsMax},
    Limit{"kTimeoutMsMax", limits::kTimeoutMsMax},
    Limit{"kTokenizeBytesMax", limits::kTokenizeBytesMax},
    Limit{"kEditsMax", limits::kEditsMax},
    Limit{"kBranchesMax", limits::kBranchesMax},
    Limit{"kTokensMax", limits::kTokensMax},
    Limit{"kTokensPageDefault", limits::kTokensPageDefault},
    Limit{"kTokensPageMax", limits::kTokensPageMax},
    Limit{"kTopLogprobsMax", limits::kTopLogprobsMax},
};

// Names of the values from `first` on, of an enum with n values.
template <class Enum>
json::array words(Enum first, std::size_t n) {
  json::array out;
  for (std::size_t i = static_cast<std::size_t>(first); i < n; ++i) out.emplace_back(to_string(static_cast<Enum>(i)));
  return out;
}

json::array or_null(json::array words) {
  words.emplace_back(nullptr);
  return words;
}

json::array joined(json::array words, const json::array& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

json::value meaning_of(std::string_view name) {
  if (name == "State") return words(State::kQueued, kStates);
  if (name == "WaitReason") return words(WaitReason::kQueue, kWaitReasons);
  if (name == "WaitReasonOrNull") return or_null(words(WaitReason::kQueue, kWaitReasons));
  if (name == "Reason") return joined(words(WaitReason::kQueue, kWaitReasons), words(EndReason::kStop, kEndReasons));
  if (name == "EndReason") return words(EndReason::kStop, kEndReasons);
  if (name == "EndReasonOrNull") return or_null(words(EndReason::kStop, kEndReasons));
  if (name == "Origin") return words(Origin::kPrompt, static_cast<std::size_t>(Origin::kInjected) + 1);
  if (name == "ErrorType") return error_types();
  if (name == "ErrorCode") return error_codes();
  if (name == "kPriorityMin") return -limits::kPriorityMax;
  const auto limit = std::find_if(kLimits.begin(), kLimits.end(), [&](const Limit& l) { return l.name == name; });
  FERMATA_CHECK(limit != kLimits.end());
  if (limit->value <= std::uint64_t{INT64_MAX}) return static_cast<std::int64_t>(limit->value);
  return limit->value;
}

void replace_names(json::value& value) {
  if (value.is_object()) {
    for (auto& [key, inner] : value.get_object()) replace_names(inner);
  } else if (value.is_array()) {
    for (json::value& inner : value.get_array()) replace_names(inner);
  } else if (value.is_string() && value.get_string().starts_with('=')) {
    value = meaning_of(std::string_view(value.get_string()).substr(1));
  }
}

}  // namespace

json::object read_source(std::string_view text) {
  Result<json::value> parsed = parse_json(text);
  FERMATA_CHECK(parsed && parsed->is_object());
  replace_names(*parsed);
  return std::move(parsed->get_object());
}

}  // namespace fermata::api::openapi
