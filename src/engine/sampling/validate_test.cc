#include "engine/sampling/validate.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "base/limits.h"

namespace fermata {
namespace {

using Change = std::function<void(SamplingParams&)>;
constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST(Validate, AcceptsDefaultsAndEdges) {
  const Change fine[] = {
      [](auto&) {},
      [](auto& p) { p.temperature = 0; },
      [](auto& p) { p.top_p = 0; },
      [](auto& p) { p.repeat_last_n = -1; },
      [](auto& p) { p.repeat_last_n = limits::kHistoryTokensMax; },
      [](auto& p) {
        p.logit_bias = {{TokenId{99}, -kInf}};
      },
      [](auto& p) { p.adaptive_target = 1; },
      [](auto& p) { p.mirostat = 2; },
  };
  for (const Change& change : fine) {
    SamplingParams params;
    change(params);
    const auto ok = validate(params, 100);
    EXPECT_TRUE(ok.has_value()) << (ok ? "" : ok.error().message);
  }
}

// Every refusal names its field.
TEST(Validate, NamesTheFieldItRefuses) {
  const std::pair<const char*, Change> bad[] = {
      {"temperature", [](auto& p) { p.temperature = -0.1f; }},
      {"temperature", [](auto& p) { p.temperature = kNaN; }},
      {"temperature", [](auto& p) { p.temperature = kInf; }},
      {"dynatemp_range", [](auto& p) { p.dynatemp_range = kNaN; }},
      {"dynatemp_range", [](auto& p) { p.dynatemp_range = 1, p.temperature = 0; }},
      {"dynatemp_exponent", [](auto& p) { p.dynatemp_exponent = -1; }},
      {"top_k", [](auto& p) { p.top_k = -2; }},
      {"top_p", [](auto& p) { p.top_p = 1.01f; }},
      {"min_p", [](auto& p) { p.min_p = kNaN; }},
      {"typical_p", [](auto& p) { p.typical_p = -1; }},
      {"top_n_sigma", [](auto& p) { p.top_n_sigma = kInf; }},
      {"min_keep", [](auto& p) { p.min_keep = 101; }},
      {"xtc_probability", [](auto& p) { p.xtc_probability = 2; }},
      {"xtc_threshold", [](auto& p) { p.xtc_threshold = -kInf; }},
      {"repeat_last_n", [](auto& p) { p.repeat_last_n = limits::kHistoryTokensMax + 1; }},
      {"repeat_last_n", [](auto& p) { p.repeat_last_n = -2; }},
      {"repeat_penalty", [](auto& p) { p.repeat_penalty = 0; }},
      {"frequency_penalty", [](auto& p) { p.frequency_penalty = kNaN; }},
      {"presence_penalty", [](auto& p) { p.presence_penalty = 101; }},
      {"dry_multiplier", [](auto& p) { p.dry_multiplier = -1; }},
      {"dry_base", [](auto& p) { p.dry_base = 0.5f; }},
      {"dry_allowed_length", [](auto& p) { p.dry_allowed_length = -1; }},
      {"dry_penalty_last_n", [](auto& p) { p.dry_penalty_last_n = -2; }},
      {"dry_sequence_breakers[1]",
       [](auto& p) {
         p.dry_sequence_breakers = {"a", ""};
       }},
      {"dry_sequence_breakers[0]", [](auto& p) { p.dry_sequence_breakers = {std::string(41, 'a')}; }},
      {"dry_sequence_breakers", [](auto& p) { p.dry_sequence_breakers.assign(17, "a"); }},
      {"mirostat", [](auto& p) { p.mirostat = 3; }},
      {"mirostat_tau", [](auto& p) { p.mirostat_tau = kNaN; }},
      {"mirostat_eta", [](auto& p) { p.mirostat_eta = 2; }},
      {"adaptive_target", [](auto& p) { p.adaptive_target = 1.5f; }},
      {"adaptive_target", [](auto& p) { p.adaptive_target = 0.5f, p.mirostat = 1; }},
      {"adaptive_decay", [](auto& p) { p.adaptive_decay = 1; }},
      {"logit_bias",
       [](auto& p) {
         p.logit_bias = {{TokenId{100}, 1}};
       }},
      {"logit_bias",
       [](auto& p) {
         p.logit_bias = {{TokenId{1}, 1}, {TokenId{-1}, 1}};
       }},
      {"logit_bias.1",
       [](auto& p) {
         p.logit_bias = {{TokenId{1}, kInf}};
       }},
      {"logit_bias.1",
       [](auto& p) {
         p.logit_bias = {{TokenId{1}, kNaN}};
       }},
      {"logit_bias",
       [](auto& p) {
         p.logit_bias.assign(limits::kLogitBiasMax + 1, {TokenId{1}, 0});
       }},
      {"grammar", [](auto& p) { p.grammar = "root ::= \"a\"", p.json_schema = "{}"; }},
      {"grammar", [](auto& p) { p.grammar.assign(limits::kGrammarBytesMax + 1, ' '); }},
      {"json_schema", [](auto& p) { p.json_schema.assign(limits::kGrammarBytesMax + 1, ' '); }},
  };
  for (const auto& [field, change] : bad) {
    SamplingParams params;
    change(params);
    const auto ok = validate(params, 100);
    ASSERT_FALSE(ok.has_value()) << field;
    EXPECT_EQ(ok.error().message.rfind(field, 0), 0u) << field << " not at the start of: " << ok.error().message;
    EXPECT_EQ(ok.error().detail, field);
  }
}

TEST(Validate, SaysValueAndRange) {
  SamplingParams params;
  params.top_p = 1.5f;
  EXPECT_EQ(validate(params, 100).error().message, "top_p is 1.5; allowed: 0 to 1");
}

}  // namespace
}  // namespace fermata
