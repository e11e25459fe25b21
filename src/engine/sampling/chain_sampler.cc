#include "engine/sampling/chain_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/limits.h"
#include "engine/sampling/candidates.h"
#include "engine/sampling/chance.h"
#include "engine/sampling/grammar/matcher.h"
#include "engine/sampling/history.h"
#include "engine/sampling/measures.h"
#include "engine/sampling/truncate.h"
#include "engine/sampling/validate.h"

namespace fermata {
namespace {

constexpr float kImpossible = -std::numeric_limits<float>::infinity();

// What a call needs for its time only, kept by the thread so that nothing of the vocabulary's size is allocated.
struct Scratch {
  std::vector<float> row;
  std::vector<std::int32_t> counts;
  RowScan raw_scan, scan;
  CandidateScratch candidates;
};

Scratch& scratch() {
  thread_local Scratch buffers;
  return buffers;
}

std::size_t window(std::int32_t last_n) {
  return static_cast<std::size_t>(last_n < 0 ? limits::kHistoryTokensMax : last_n);
}

// What stays the same for all clones of a sampler.
struct Settings {
  SamplingParams params;
  std::vector<LogitBias> biases;  // with those of ignore_eos and of the model
  PenaltyParams penalties;
  DryParams dry;
  MirostatParams mirostat;
  AdaptiveParams adaptive;
  std::shared_ptr<const DryBreakers> breakers;
  std::int32_t n_vocab = 0;
  std::size_t history = 0;

  bool edits_row() const { return !biases.empty() || penalties.active() || dry.active(); }
  SamplerCarry start() const {
    if (params.mirostat != 0) return mirostat_start(mirostat);
    if (params.adaptive_target >= 0) return adaptive_start(adaptive);
    return {};
  }
};

class ChainSampler final : public Sampler {
 public:
  ChainSampler(std::shared_ptr<const Settings> settings, std::optional<Matcher> matcher)
      : settings_(std::move(settings)),
        history_(settings_->history),
        matcher_(std::move(matcher)),
        carry_(settings_->start()) {}

  Result<Choice> sample(std::span<const float> logits, Position position) const override {
    FERMATA_CHECK_EQ(static_cast<std::int32_t>(logits.size()), settings_->n_vocab);
    Scratch& buffers = scratch();
    scan_row(logits, buffers.raw_scan);
    if (buffers.raw_scan.has_nan || !std::isfinite(buffers.raw_scan.max)) {
      return Error{Code::kEngine, "the logits row holds no finite maximum", at(position), false};
    }
    const RowMeasures measures = measure_row(logits, buffers.raw_scan);
    auto chosen = choose(logits, position);
    if (!chosen) return chosen.error();
    Choice choice;
    choice.token = chosen->token;
    choice.carry = chosen->carry;
    choice.logprob = measures.logprob(logits[static_cast<std::size_t>(raw(choice.token))]);
    choice.entropy = measures.entropy;
    choice.margin = measures.margin;
    return choice;
  }

  Result<void> accept(TokenId token, TokenRole role, const SamplerCarry& carry) override {
    if (raw(token) < 0 || raw(token) >= settings_->n_vocab) {
      return Error{Code::kInvalidArgument, "token " + std::to_string(raw(token)) + " is not in the vocabulary",
                   "0 to " + std::to_string(settings_->n_vocab - 1), false};
    }
    if (!std::isfinite(carry.first) || !std::isfinite(carry.second) || carry.second < 0) {
      return Error{Code::kInvalidArgument, "the sampler's carry holds no finite numbers", "", false};
    }
    if (role == TokenRole::kGenerated) {
      if (matcher_ && !matcher_->advance(token)) {
        return Error{Code::kGrammar, "the grammar does not allow token " + std::to_string(raw(token)) + " here", "",
                     false};
      }
      if (!is_empty(carry)) carry_ = carry;
    }
    history_.push(token);
    return {};
  }

  std::unique_ptr<Sampler> clone() const override { return std::make_unique<ChainSampler>(*this); }

 private:
  static std::string at(Position position) { return "position " + std::to_string(position); }

  Result<Chosen> choose(std::span<const float> logits, Position position) const {
    Scratch& buffers = scratch();
    std::span<const float> row = logits;
    const RowScan* scan = &buffers.raw_scan;
    if (settings_->edits_row()) {
      edit(logits, buffers);
      row = buffers.row;
      scan = &buffers.scan;
      if (scan->max == kImpossible) {
        return Error{Code::kInvalidArgument, "logit_bias and ignore_eos leave no token to choose", at(position), false};
      }
    }
    const Chosen free = choose_from(row, *scan, {key(), position, Attempt::kFirst});
    if (!matcher_ || matcher_->allows(free.token)) return free;
    if (row.data() == logits.data()) buffers.row.assign(logits.begin(), logits.end());
    strike_out(buffers);
    if (buffers.scan.max == kImpossible) {
      const bool only_end = matcher_->complete();
      return Error{Code::kGrammar, "the grammar leaves no token to choose",
                   at(position) + (only_end ? "; the text is complete and no end of generation is possible" : ""),
                   false};
    }
    return choose_from(buffers.row, buffers.scan, {key(), position, Attempt::kWithGrammar});
  }

  SamplingKey key() const { return key_from_seed(settings_->params.seed); }

  void edit(std::span<const float> logits, Scratch& buffers) const {
    buffers.row.assign(logits.begin(), logits.end());
    for (const auto& [token, bias] : settings_->biases) buffers.row[static_cast<std::size_t>(raw(token))] += bias;
    if (settings_->penalties.active()) apply_penalties(settings_->penalties, history_, buffers.row, buffers.counts);
    if (settings_->dry.active()) apply_dry(settings_->dry, *settings_->breakers, history_, buffers.row);
    scan_row(buffers.row, buffers.scan);
  }

  void strike_out(Scratch& buffers) const {
    const auto mask = matcher_->allowed();
    for (std::size_t i = 0; i < buffers.row.size(); ++i) {
      if (!(mask[i >> 6] >> (i & 63) & 1)) buffers.row[i] = kImpossible;
    }
    scan_row(buffers.row, buffers.scan);
  }

  Chosen choose_from(std::span<const float> row, const RowScan& scan, const DrawPlace& place) const {
    const SamplingParams& p = settings_->params;
    if (p.temperature < kColdest) return {argmax(row, scan), carry_};
    Candidates candidates(row, scan, scratch().candidates);
    if (p.mirostat != 0) {
      apply_temperature(candidates, p.temperature);
      const double u = uniform_double(place, Stream::kMirostat);
      return p.mirostat == 1 ? choose_mirostat_v1(candidates, settings_->mirostat, carry_, u)
                             : choose_mirostat_v2(candidates, settings_->mirostat, carry_, u);
    }
    const auto min_keep = static_cast<std::size_t>(p.min_keep);
    keep_top_n_sigma(candidates, p.top_n_sigma);
    keep_top_k(candidates, p.top_k);
    keep_typical(candidates, p.typical_p, min_keep);
    keep_top_p(candidates, p.top_p, min_keep);
    keep_min_p(candidates, p.min_p, min_keep);
    exclude_top_choices(candidates, p.xtc_probability, p.xtc_threshold, min_keep, uniform_float(place, Stream::kXtc));
    apply_dynamic_temperature(candidates, p.temperature, p.dynatemp_range, p.dynatemp_exponent);
    if (p.adaptive_target >= 0) {
      return choose_adaptive(candidates, settings_->adaptive, carry_, uniform_double(place, Stream::kAdaptive));
    }
    return {choose_dist(candidates, uniform_double(place, Stream::kDist)), carry_};
  }

  std::shared_ptr<const Settings> settings_;
  History history_;
  mutable std::optional<Matcher> matcher_;  // mutable: remembers what it worked out, answers the same
  SamplerCarry carry_;
};

std::string field_of_grammar(const SamplingParams& params) {
  return params.json_schema.empty() ? "grammar" : "json_schema";
}

std::vector<LogitBias> all_biases(const SamplingParams& params, std::span<const TokenId> never,
                                  std::span<const TokenId> ends) {
  std::vector<LogitBias> biases = params.logit_bias;
  for (const TokenId token : never) biases.push_back({token, kImpossible});
  if (params.ignore_eos) {
    for (const TokenId token : ends) biases.push_back({token, kImpossible});
  }
  return biases;
}

}  // namespace

ChainSamplerFactory::ChainSamplerFactory(std::shared_ptr<const Vocabulary> vocabulary, std::vector<TokenId> never,
                                         SchemaToGrammar schema_to_grammar)
    : vocabulary_(std::move(vocabulary)),
      never_(std::move(never)),
      schema_to_grammar_(std::move(schema_to_grammar)),
      tokens_(std::make_shared<TokenIndex>(*vocabulary_)) {}

Result<std::unique_ptr<Sampler>> ChainSamplerFactory::make(const SamplingParams& params) const {
  const std::int32_t n_vocab = vocabulary_->n_tokens();
  if (auto ok = validate(params, n_vocab); !ok) return ok.error();
  auto grammar = grammar_for(params);
  if (!grammar) return grammar.error();

  auto settings = std::make_shared<Settings>();
  settings->params = params;
  settings->n_vocab = n_vocab;
  settings->biases = all_biases(params, never_, tokens_->ends());
  settings->penalties = {window(params.repeat_last_n), params.repeat_penalty, params.frequency_penalty,
                         params.presence_penalty};
  settings->dry = {params.dry_multiplier, params.dry_base, params.dry_allowed_length,
                   window(params.dry_penalty_last_n)};
  if (settings->penalties.active()) settings->history = settings->penalties.last_n;
  if (settings->dry.active()) {
    settings->history = std::max(settings->history, settings->dry.last_n);
    settings->breakers = breakers_for(params);
  }
  settings->mirostat = {params.mirostat_tau, params.mirostat_eta, n_vocab};
  settings->adaptive = {params.adaptive_target, params.adaptive_decay};

  std::optional<Matcher> matcher;
  if (*grammar) {
    matcher.emplace(*grammar, tokens_);
    if (matcher->dead()) {
      return Error{Code::kGrammar, "grammar: its beginning can be read in more ways than the limit allows",
                   std::to_string(limits::kGrammarStatesMax) + " ways", false, field_of_grammar(params)};
    }
  }
  return std::unique_ptr<Sampler>(std::make_unique<ChainSampler>(std::move(settings), std::move(matcher)));
}

Result<std::shared_ptr<const Grammar>> ChainSamplerFactory::grammar_for(const SamplingParams& params) const {
  if (params.grammar.empty() && params.json_schema.empty()) return std::shared_ptr<const Grammar>();
  std::string text = params.grammar;
  if (!params.json_schema.empty()) {
    if (!schema_to_grammar_) {
      return Error{Code::kUnsupported, "json_schema is not supported by this engine", "json_schema", false,
                   "json_schema"};
    }
    auto converted = schema_to_grammar_(params.json_schema);
    if (!converted) return converted.error();
    text = std::move(*converted);
  }
  auto parsed = Grammar::parse(text, [this](std::string_view name) -> std::optional<TokenId> {
    const auto ids = vocabulary_->tokenize(name, Markers::kParse);
    if (ids.size() != 1) return std::nullopt;
    return ids[0];
  });
  if (parsed) return parsed;
  Error error = std::move(parsed).error();
  error.field = field_of_grammar(params);
  return error;
}

std::shared_ptr<const DryBreakers> ChainSamplerFactory::breakers_for(const SamplingParams& params) const {
  constexpr std::size_t kKnownMax = 16;
  {
    const std::lock_guard lock(mutex_);
    for (const KnownBreakers& known : known_) {
      if (known.strings == params.dry_sequence_breakers) return known.breakers;
    }
  }
  auto breakers = std::make_shared<const DryBreakers>(make_dry_breakers(*vocabulary_, params.dry_sequence_breakers));
  const std::lock_guard lock(mutex_);
  if (known_.size() >= kKnownMax) known_.erase(known_.begin());
  known_.push_back({params.dry_sequence_breakers, breakers});
  return breakers;
}

}  // namespace fermata
