#include "engine/sampling/plain_sampler.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "engine/sampling/chance.h"
#include "engine/sampling/history.h"
#include "engine/sampling/measures.h"
#include "engine/sampling/truncate.h"
#include "engine/sampling/validate.h"

namespace fermata {
namespace {

constexpr float kImpossible = -std::numeric_limits<float>::infinity();

struct ToyGrammar {
  bool on = false;
  bool cycles = false;
  std::vector<std::vector<TokenId>> sets;

  bool allows(std::size_t place, TokenId token, TokenId eog) const {
    if (!on) return true;
    if (!cycles && place >= sets.size()) return token == eog;
    const auto& set = sets[place % sets.size()];
    return std::find(set.begin(), set.end(), token) != set.end();
  }
};

Error malformed(std::string_view grammar, std::size_t place) {
  return Error{Code::kGrammar, "grammar: expected cycle:<id>,... or any-of:<id>,...;...",
               "at byte " + std::to_string(place) + " of '" + std::string(grammar.substr(0, 100)) + "'", false};
}

Result<ToyGrammar> parse(std::string_view text, std::int32_t n_vocab) {
  ToyGrammar grammar;
  if (text.empty()) return grammar;
  grammar.on = true;
  grammar.cycles = text.starts_with("cycle:");
  if (!grammar.cycles && !text.starts_with("any-of:")) return malformed(text, 0);
  const char* const end = text.data() + text.size();
  const char* at = text.data() + text.find(':') + 1;
  grammar.sets.emplace_back();
  while (true) {
    std::int32_t id = -1;
    const auto [next, failure] = std::from_chars(at, end, id);
    const auto place = static_cast<std::size_t>(at - text.data());
    if (failure != std::errc() || id < 0 || id >= n_vocab) return malformed(text, place);
    grammar.sets.back().push_back(TokenId{id});
    if (next == end) return grammar;
    if (*next != ',' && (grammar.cycles || *next != ';')) return malformed(text, place);
    if (grammar.cycles || *next == ';') grammar.sets.emplace_back();
    at = next + 1;
  }
}

class PlainSampler final : public Sampler {
 public:
  PlainSampler(const SamplingParams& params, std::int32_t n_vocab, TokenId eog, ToyGrammar grammar)
      : params_(params), n_vocab_(n_vocab), eog_(eog), grammar_(std::move(grammar)), history_(window(params)) {
    mirostat_ = {params.mirostat_tau, params.mirostat_eta, n_vocab};
    carry_ = mirostat_start(mirostat_);
  }

  Result<Choice> sample(std::span<const float> logits, Position position) const override {
    FERMATA_CHECK_EQ(static_cast<std::int32_t>(logits.size()), n_vocab_);
    RowScan scan;
    scan_row(logits, scan);
    if (scan.has_nan || !std::isfinite(scan.max)) {
      return Error{Code::kEngine, "the logits row holds no finite maximum", "position " + std::to_string(position),
                   false};
    }
    const RowMeasures measures = measure_row(logits, scan);
    const std::vector<float> row = edited(logits);
    scan_row(row, scan);
    if (scan.max == kImpossible) {
      return Error{Code::kGrammar, "grammar and logit_bias leave no token to choose",
                   "position " + std::to_string(position), false};
    }
    Choice choice = choose(row, scan, position);
    choice.logprob = measures.logprob(logits[static_cast<std::size_t>(raw(choice.token))]);
    choice.entropy = measures.entropy;
    choice.margin = measures.margin;
    return choice;
  }

  Result<void> accept(TokenId token, TokenRole role, const SamplerCarry& carry) override {
    if (raw(token) < 0 || raw(token) >= n_vocab_) {
      return Error{Code::kInvalidArgument, "token " + std::to_string(raw(token)) + " is not in the vocabulary", "",
                   false};
    }
    if (role == TokenRole::kGenerated) {
      if (!grammar_.allows(n_generated_, token, eog_)) {
        return Error{Code::kGrammar, "the grammar does not allow token " + std::to_string(raw(token)) + " here",
                     "generated token " + std::to_string(n_generated_), false};
      }
      ++n_generated_;
      if (!is_empty(carry)) carry_ = carry;
    }
    history_.push(token);
    return {};
  }

  std::unique_ptr<Sampler> clone() const override { return std::make_unique<PlainSampler>(*this); }

 private:
  static std::size_t window(const SamplingParams& params) {
    return static_cast<std::size_t>(params.repeat_last_n < 0 ? limits::kHistoryTokensMax : params.repeat_last_n);
  }

  std::vector<float> edited(std::span<const float> logits) const {
    std::vector<float> row(logits.begin(), logits.end());
    for (const auto& [token, bias] : params_.logit_bias) row[static_cast<std::size_t>(raw(token))] += bias;
    if (params_.ignore_eos) row[static_cast<std::size_t>(raw(eog_))] = kImpossible;
    const PenaltyParams penalties{history_.size(), params_.repeat_penalty, params_.frequency_penalty, 0};
    std::vector<std::int32_t> counts;
    if (penalties.active()) apply_penalties(penalties, history_, row, counts);
    for (std::size_t i = 0; grammar_.on && i < row.size(); ++i) {
      if (!grammar_.allows(n_generated_, TokenId{static_cast<std::int32_t>(i)}, eog_)) row[i] = kImpossible;
    }
    return row;
  }

  Choice choose(std::span<const float> row, const RowScan& scan, Position position) const {
    Choice choice;
    choice.carry = params_.mirostat == 0 ? SamplerCarry{} : carry_;
    if (params_.temperature < kColdest) {
      choice.token = argmax(row, scan);
      return choice;
    }
    const DrawPlace place{key_from_seed(params_.seed), position, Attempt::kFirst};
    CandidateScratch scratch;
    Candidates candidates(row, scan, scratch);
    if (params_.mirostat == 0) keep_top_k(candidates, params_.top_k);
    apply_temperature(candidates, params_.temperature);
    if (params_.mirostat == 0) {
      choice.token = choose_dist(candidates, uniform_double(place, Stream::kDist));
      return choice;
    }
    const auto chosen = choose_mirostat_v2(candidates, mirostat_, carry_, uniform_double(place, Stream::kMirostat));
    choice.token = chosen.token;
    choice.carry = chosen.carry;
    return choice;
  }

  SamplingParams params_;
  std::int32_t n_vocab_;
  TokenId eog_;
  ToyGrammar grammar_;
  MirostatParams mirostat_;
  History history_;
  std::size_t n_generated_ = 0;
  SamplerCarry carry_;
};

}  // namespace

Result<std::unique_ptr<Sampler>> PlainSamplerFactory::make(const SamplingParams& params) const {
  if (auto ok = validate(params, n_vocab_); !ok) return ok.error();
  auto grammar = parse(params.grammar, n_vocab_);
  if (!grammar) return grammar.error();
  return std::unique_ptr<Sampler>(std::make_unique<PlainSampler>(params, n_vocab_, eog_, std::move(*grammar)));
}

}  // namespace fermata
