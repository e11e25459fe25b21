#include "api/openai/fields.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "base/limits.h"
#include "engine/sampling/validate.h"

namespace fermata::api {
namespace {

// A request that is fine without the field in question, with it set to a value (JSON).
std::string body_with(const Field& field, Route route, std::string_view value) {
  json::object body;
  if (route == Route::kChat)
    body["messages"] = *parse_json(R"([{"role":"user","content":"Hi"}])");
  else
    body["prompt"] = "Hi";
  json::object* object = &body;
  std::string_view name = field.name;
  if (const std::size_t dot = name.find('.'); dot != std::string_view::npos) {
    const json::string_view outer(name.data(), dot);
    object = &(body[outer] = json::object()).get_object();
    name.remove_prefix(dot + 1);
    if (outer == "stream_options") body["stream"] = true;
    object = &body[outer].get_object();
    if (outer == "fermata" && name == "on_new_message") (*object)["session"] = "s";
  }
  (*object)[json::string_view(name.data(), name.size())] = *parse_json(value);
  return to_text(body);
}

template <class Check>
void for_each_field(const Check& check) {
  for (const Field& field : fields())
    for (const Route route : {Route::kChat, Route::kCompletions})
      if (is_on(field, route)) check(field, route);
}

TEST(Fields, StandOncePerRoute) {
  std::set<std::pair<int, std::string_view>> seen;
  for_each_field([&](const Field& field, Route route) {
    EXPECT_TRUE(seen.emplace(static_cast<int>(route), field.name).second) << field.name;
  });
}

// An enforced field that no code reads would be refused here as unknown.
TEST(Fields, ExamplesAndNullAreAccepted) {
  for_each_field([](const Field& field, Route route) {
    const auto call = parse_call(route, body_with(field, route, field.example));
    EXPECT_TRUE(call) << field.name << ": " << (call ? "" : call.error().message);
    if (field.name == "messages" || field.name == "prompt") return;
    const auto absent = parse_call(route, body_with(field, route, "null"));
    EXPECT_TRUE(absent) << field.name << ": " << (absent ? "" : absent.error().message);
  });
}

TEST(Fields, EveryNeutralValueIsAcceptedAndOthersAreRefusedByName) {
  for_each_field([](const Field& field, Route route) {
    if (field.treatment != Treatment::kRefused) return;
    std::string_view left = field.neutral;
    while (!left.empty()) {
      const std::size_t end = std::min(left.find('|'), left.size());
      EXPECT_TRUE(parse_call(route, body_with(field, route, left.substr(0, end)))) << field.name;
      left.remove_prefix(std::min(end + 1, left.size()));
    }
    for (const std::string_view value : {"2", "true", R"("x")", R"(["x"])", R"({"x":1})"}) {
      const auto call = parse_call(route, body_with(field, route, value));
      ASSERT_FALSE(call) << field.name << " " << value;
      EXPECT_EQ(call.error().code, Code::kInvalidArgument);
      EXPECT_EQ(call.error().field, field.name);
      EXPECT_NE(call.error().message.find(field.note), std::string::npos) << call.error().message;
    }
  });
}

TEST(Fields, EnforcedOnesOfTheWrongTypeAreRefusedByName) {
  for_each_field([](const Field& field, Route route) {
    if (field.treatment != Treatment::kEnforced) return;
    int n_refused = 0;
    for (const std::string_view value : {"-1e15", R"("")", "{\"?\":1}", "[{}]"}) {
      const auto call = parse_call(route, body_with(field, route, value));
      if (call) continue;  // it may be of that type
      ++n_refused;
      EXPECT_TRUE(call.error().field.starts_with(field.name)) << field.name << " names " << call.error().field;
      EXPECT_NE(call.error().message.find(field.name), std::string::npos) << call.error().message;
    }
    EXPECT_GE(n_refused, 3) << field.name;
  });
}

// The two places that know the ranges must agree.
TEST(Fields, RangesAreThoseOfTheSampler) {
  constexpr std::int32_t kVocab = std::numeric_limits<std::int32_t>::max();
  for (const Field& field : fields()) {
    const auto is_valid = [&](double value) {
      SamplingParams params;
      if (const auto* whole = std::get_if<std::int32_t SamplingParams::*>(&field.member))
        params.*(*whole) = static_cast<std::int32_t>(value);
      else
        params.*std::get<float SamplingParams::*>(field.member) = static_cast<float>(value);
      return validate(params, kVocab).has_value();
    };
    if (field.member.index() == 0) continue;
    const double step = field.member.index() == 2 ? 1 : 0.001;
    EXPECT_TRUE(is_valid(field.least)) << field.name;
    EXPECT_TRUE(is_valid(field.most)) << field.name;
    if (field.least - step >= std::numeric_limits<std::int32_t>::min()) {
      EXPECT_FALSE(is_valid(field.least - step)) << field.name;
    }
    if (field.most + step <= std::numeric_limits<std::int32_t>::max()) {
      EXPECT_FALSE(is_valid(field.most + step)) << field.name;
    }
  }
}

TEST(Fields, NumbersReachTheSampler) {
  for_each_field([](const Field& field, Route route) {
    if (field.member.index() == 0) return;
    const auto call = parse_call(route, body_with(field, route, field.example));
    ASSERT_TRUE(call) << field.name;
    const double expected = parse_json(field.example)->to_number<double>();
    const SamplingParams& params = call->request.sampling;
    if (const auto* whole = std::get_if<std::int32_t SamplingParams::*>(&field.member))
      EXPECT_EQ(params.*(*whole), expected) << field.name;
    else
      EXPECT_EQ(params.*std::get<float SamplingParams::*>(field.member), static_cast<float>(expected)) << field.name;
  });
}

}  // namespace
}  // namespace fermata::api
