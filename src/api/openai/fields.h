#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "api/openai/call.h"
#include "engine/sampling/params.h"

namespace fermata::api {

enum class Treatment {
  kEnforced,  // it does what it says
  kHarmless,  // accepted; there is nothing here that it could change
  kRefused,   // 400, unless it is null or one of `neutral`
};

// A field of the OpenAI routes that we know of, by OpenAI's name or llama-server's.
struct Field {
  enum Where { kChat = 1, kCompletions = 2, kBoth = 3 };
  // A number that goes straight into the sampling parameters.
  using Member = std::variant<std::monostate, float SamplingParams::*, std::int32_t SamplingParams::*>;

  std::string_view name;  // of a part of an object: "stream_options.include_usage"
  Where where = kBoth;
  Treatment treatment = Treatment::kEnforced;
  std::string_view note;          // for docs/api.md; of a refused one also the end of its error message
  std::string_view example;       // JSON: a value that is accepted
  std::string_view neutral = {};  // of a refused one: accepted values, JSON, with | between them
  Member member = {};
  double least = 0;  // of a member
  double most = 0;
  std::string_view same_as = {};  // another name of this one
};

std::span<const Field> fields();
bool is_on(const Field& field, Route route);

// What docs/api.md says of it: range, note, accepted values.
std::string meaning_of(const Field& field);

// The table of docs/api.md.
std::string fields_table();

}  // namespace fermata::api
