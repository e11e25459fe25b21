#include "engine/sampling/validate.h"

#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "engine/sampling/truncate.h"

namespace fermata {
namespace {

Error refused(std::string_view field, const std::string& value, const std::string& allowed) {
  std::string message = std::string(field) + " is " + value + "; allowed: " + allowed;
  return Error{Code::kInvalidArgument, std::move(message), std::string(field), false, std::string(field)};
}

Error too_large(std::string_view field, std::size_t size, std::size_t limit, std::string_view unit) {
  std::string message = std::string(field) + " has " + std::to_string(size) + " " + std::string(unit) +
                        "; the limit is " + std::to_string(limit);
  return Error{Code::kTooLarge, std::move(message), std::string(field), false, std::string(field)};
}

template <class Number>
std::string text_of(Number number) {
  std::ostringstream out;
  out << number;
  return out.str();
}

template <class Number>
struct Range {
  std::string_view field;
  Number value;
  Number least;
  Number most;
};

template <class Number>
Result<void> check(const Range<Number>& range) {
  if (range.value >= range.least && range.value <= range.most) return {};  // NaN fails both
  return refused(range.field, text_of(range.value), text_of(range.least) + " to " + text_of(range.most));
}

Result<void> check_floats(const SamplingParams& p) {
  const Range<float> ranges[] = {
      {"temperature", p.temperature, 0, 100},
      {"dynatemp_range", p.dynatemp_range, 0, 100},
      {"dynatemp_exponent", p.dynatemp_exponent, 0, 100},
      {"top_p", p.top_p, 0, 1},
      {"min_p", p.min_p, 0, 1},
      {"typical_p", p.typical_p, 0, 1},
      {"top_n_sigma", p.top_n_sigma, -1000, 1000},
      {"xtc_probability", p.xtc_probability, 0, 1},
      {"xtc_threshold", p.xtc_threshold, 0, 1},
      {"repeat_penalty", p.repeat_penalty, 0.01f, 100},
      {"frequency_penalty", p.frequency_penalty, -100, 100},
      {"presence_penalty", p.presence_penalty, -100, 100},
      {"dry_multiplier", p.dry_multiplier, 0, 100},
      {"dry_base", p.dry_base, 1, 100},
      {"mirostat_tau", p.mirostat_tau, 0, 100},
      {"mirostat_eta", p.mirostat_eta, 0, 1},
      {"adaptive_target", p.adaptive_target, -1, 1},
      {"adaptive_decay", p.adaptive_decay, 0, 0.99f},
  };
  for (const auto& range : ranges) {
    if (auto ok = check(range); !ok) return ok;
  }
  return {};
}

Result<void> check_integers(const SamplingParams& p, std::int32_t n_vocab) {
  constexpr std::int32_t kWindowMax = limits::kHistoryTokensMax;
  const Range<std::int32_t> ranges[] = {
      {"top_k", p.top_k, -1, std::numeric_limits<std::int32_t>::max()},
      {"min_keep", p.min_keep, 0, n_vocab},
      {"repeat_last_n", p.repeat_last_n, -1, kWindowMax},
      {"dry_allowed_length", p.dry_allowed_length, 0, kWindowMax},
      {"dry_penalty_last_n", p.dry_penalty_last_n, -1, kWindowMax},
      {"mirostat", p.mirostat, 0, 2},
  };
  for (const auto& range : ranges) {
    if (auto ok = check(range); !ok) return ok;
  }
  return {};
}

Result<void> check_breakers(const SamplingParams& p) {
  const auto& breakers = p.dry_sequence_breakers;
  if (breakers.size() > limits::kDryBreakersMax) {
    return too_large("dry_sequence_breakers", breakers.size(), limits::kDryBreakersMax, "strings");
  }
  for (std::size_t i = 0; i < breakers.size(); ++i) {
    const std::string field = "dry_sequence_breakers[" + std::to_string(i) + "]";
    if (breakers[i].empty()) return refused(field, "empty", "strings of 1 to 40 bytes");
    if (breakers[i].size() > limits::kDryBreakerBytesMax) {
      return too_large(field, breakers[i].size(), limits::kDryBreakerBytesMax, "bytes");
    }
  }
  static_assert(limits::kDryBreakerBytesMax == 40, "the text above says 40");
  return {};
}

Result<void> check_biases(const SamplingParams& p, std::int32_t n_vocab) {
  constexpr float kBiasMax = 10'000;
  if (p.logit_bias.size() > limits::kLogitBiasMax) {
    return too_large("logit_bias", p.logit_bias.size(), limits::kLogitBiasMax, "entries");
  }
  // By its token: who sent an object from tokens to numbers knows of no order.
  for (const auto& [token, bias] : p.logit_bias) {
    const std::string id = std::to_string(raw(token));
    if (raw(token) < 0 || raw(token) >= n_vocab) {
      return Error{Code::kInvalidArgument,
                   "logit_bias has token " + id + "; allowed: 0 to " + std::to_string(n_vocab - 1), "logit_bias", false,
                   "logit_bias"};
    }
    const bool forbids = bias == -std::numeric_limits<float>::infinity();
    if (!forbids && !(std::fabs(bias) <= kBiasMax)) {
      return refused("logit_bias." + id, text_of(bias), "-10000 to 10000, or -inf");
    }
  }
  return {};
}

Result<void> check_grammar(const SamplingParams& p) {
  if (!p.grammar.empty() && !p.json_schema.empty()) {
    return Error{Code::kInvalidArgument, "grammar and json_schema exclude each other; give one", "grammar", false};
  }
  if (p.grammar.size() > limits::kGrammarBytesMax) {
    return too_large("grammar", p.grammar.size(), limits::kGrammarBytesMax, "bytes");
  }
  if (p.json_schema.size() > limits::kGrammarBytesMax) {
    return too_large("json_schema", p.json_schema.size(), limits::kGrammarBytesMax, "bytes");
  }
  return {};
}

// Settings that are sound by themselves and contradict each other.
Result<void> check_pairs(const SamplingParams& p) {
  if (p.dynatemp_range > 0 && p.temperature < kColdest) {
    return refused("dynatemp_range", text_of(p.dynatemp_range), "0 when temperature is 0");
  }
  if (p.adaptive_target >= 0 && p.mirostat != 0) {
    return refused("adaptive_target", text_of(p.adaptive_target), "less than 0 when mirostat is on");
  }
  if (p.mirostat != 0 && p.dynatemp_range > 0) {
    return refused("dynatemp_range", text_of(p.dynatemp_range), "0 when mirostat is on");
  }
  return {};
}

}  // namespace

Result<void> validate(const SamplingParams& params, std::int32_t n_vocab) {
  if (auto ok = check_floats(params); !ok) return ok;
  if (auto ok = check_integers(params, n_vocab); !ok) return ok;
  if (auto ok = check_breakers(params); !ok) return ok;
  if (auto ok = check_biases(params, n_vocab); !ok) return ok;
  if (auto ok = check_grammar(params); !ok) return ok;
  return check_pairs(params);
}

}  // namespace fermata
