#include "engine/sampling/chain_sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "engine/sampling/plain_sampler.h"
#include "engine/sampling/random.h"
#include "engine/sampling/toy_vocabulary.h"

namespace fermata {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

const ToyVocabulary& vocabulary() {
  static const ToyVocabulary shared;
  return shared;
}

const SamplerFactory& chain() {
  static const ChainSamplerFactory factory(std::make_shared<ToyVocabulary>(), {}, {});
  return factory;
}

std::unique_ptr<Sampler> make(const SamplerFactory& factory, const SamplingParams& params) {
  auto made = factory.make(params);
  if (!made) ADD_FAILURE() << made.error().message << " " << made.error().detail;
  return std::move(*made);
}

std::vector<float> random_row(std::mt19937& random, std::size_t n, bool coarse) {
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> row(n);
  for (float& logit : row) logit = coarse ? std::round(normal(random)) : normal(random);
  return row;
}

float unit(std::mt19937& random) { return std::generate_canonical<float, 24>(random); }

SamplingParams random_params(std::mt19937& random, std::size_t n_vocab, bool toy_grammar) {
  SamplingParams p;
  const auto sometimes = [&](unsigned n) { return random() % n == 0; };
  p.seed = random();
  p.temperature = sometimes(6) ? 0 : 0.3f + 1.5f * unit(random);
  if (p.temperature > 0.3f && sometimes(4)) p.dynatemp_range = 0.3f;
  p.top_k = sometimes(3) ? 0 : static_cast<std::int32_t>(1 + random() % 60);
  p.top_p = sometimes(2) ? 1 : 0.5f + 0.5f * unit(random);
  p.min_p = sometimes(2) ? 0 : 0.1f * unit(random);
  p.typical_p = sometimes(4) ? 0.3f + 0.6f * unit(random) : 1;
  p.top_n_sigma = sometimes(4) ? 2 * unit(random) : -1;
  p.xtc_probability = sometimes(3) ? 0.6f : 0;
  p.repeat_last_n = sometimes(3) ? -1 : static_cast<std::int32_t>(random() % 40);
  p.repeat_penalty = sometimes(2) ? 1.3f : 1;
  p.frequency_penalty = sometimes(3) ? 0.4f : 0;
  p.presence_penalty = sometimes(3) ? 0.3f : 0;
  if (sometimes(3)) {
    p.dry_multiplier = 0.8f;
    p.dry_allowed_length = static_cast<std::int32_t>(random() % 3);
    p.dry_penalty_last_n = static_cast<std::int32_t>(random() % 50) - 1;
  }
  const auto kind = random() % 6;
  if (kind == 0) p.mirostat = 2;
  if (kind == 1) p.mirostat = 1;
  if (p.mirostat != 0) p.dynatemp_range = 0;
  if (kind == 2) p.adaptive_target = unit(random);
  if (sometimes(3)) p.logit_bias = {{TokenId{static_cast<std::int32_t>(random() % n_vocab)}, sometimes(2) ? -kInf : 4}};
  p.ignore_eos = sometimes(5);
  if (sometimes(2)) {
    const char* const real[] = {"root ::= [a-c12 ]+ \"x\"", "root ::= (\"{\" [^}]* \"}\")*", "root ::= .*",
                                "root ::= \"\\\"\" [^\\x00-\\x1F\"]{0,200} \"\\\"\"",
                                "root ::= l+\nl ::= [a-z] | \"(\" l \")\""};
    p.grammar = toy_grammar ? std::string("cycle:1,2,3,4,5,6,7") : std::string(real[random() % std::size(real)]);
    if (toy_grammar && sometimes(2)) p.grammar = "any-of:1,2,3;4,5;6;7,8,9,10;11,12;13,14;15,16;17;18;19,20";
  }
  return p;
}

bool same(const Choice& a, const Choice& b) {
  return a.token == b.token && a.logprob == b.logprob && a.entropy == b.entropy && a.margin == b.margin &&
         a.carry == b.carry;
}

// The one idea: a sampler that lived through everything, one folded afresh from the tokens, and a clone choose alike.
// Tokens that nobody sampled (forced ones, with an empty carry) stand among the sampled.
int fold_is_the_only_state(const SamplerFactory& factory, std::size_t n_vocab, bool toy, int n_rounds, unsigned seed) {
  std::mt19937 random(seed);
  int n_choices = 0;
  for (int round = 0; round < n_rounds; ++round) {
    const SamplingParams params = random_params(random, n_vocab, toy);
    const auto lived = make(factory, params);
    std::vector<std::tuple<TokenId, TokenRole, SamplerCarry>> tokens;
    const auto accept = [&](Sampler& sampler, const auto& token) {
      return sampler.accept(std::get<0>(token), std::get<1>(token), std::get<2>(token)).has_value();
    };
    for (auto n = random() % 20; n > 0; --n) {
      tokens.emplace_back(TokenId{static_cast<std::int32_t>(random() % n_vocab)}, TokenRole::kPrompt, SamplerCarry{});
      EXPECT_TRUE(accept(*lived, tokens.back()));
    }
    for (int step = 0; step < 12; ++step) {
      const auto row = random_row(random, n_vocab, round % 2 == 0);
      const auto position = static_cast<Position>(tokens.size());
      const auto folded = make(factory, params);
      for (const auto& token : tokens) EXPECT_TRUE(accept(*folded, token));
      const auto clone = lived->clone();
      const auto a = lived->sample(row, position), b = folded->sample(row, position), c = clone->sample(row, position);
      const auto again = lived->sample(row, position);
      EXPECT_EQ(a.has_value(), b.has_value());
      if (!a.has_value() || !b.has_value() || !c.has_value()) break;
      EXPECT_TRUE(same(*a, *b) && same(*a, *c) && same(*a, *again))
          << "seed " << seed << " round " << round << " step " << step;
      if (!same(*a, *b)) return n_choices;
      ++n_choices;
      tokens.emplace_back(a->token, TokenRole::kGenerated, a->carry);
      if (random() % 4 == 0) {
        const TokenId forced{static_cast<std::int32_t>(random() % n_vocab)};
        if (make(factory, params) && clone->accept(forced, TokenRole::kGenerated, {})) {
          tokens.back() = {forced, TokenRole::kGenerated, SamplerCarry{}};
        }
      }
      EXPECT_TRUE(accept(*lived, tokens.back())) << params.grammar << " token " << raw(std::get<0>(tokens.back()));
    }
  }
  return n_choices;
}

TEST(ChainSampler, FoldIsTheOnlyState) {
  const auto n = static_cast<std::size_t>(vocabulary().n_tokens());
  EXPECT_GT(fold_is_the_only_state(chain(), n, false, 300, 11), 1500);
}

TEST(PlainSampler, FoldIsTheOnlyState) {
  EXPECT_GT(fold_is_the_only_state(PlainSamplerFactory(64, TokenId{0}), 64, true, 300, 12), 1500);
}

// Two tokens of equal weight: which one is chosen tells the random number's half, and so its position, stream and key.
TEST(SamplerChance, TheRandomNumberIsThatOfItsPosition) {
  const PlainSamplerFactory plain(16, TokenId{0});
  for (const auto& [factory, n] : {std::pair<const SamplerFactory*, std::size_t>{&chain(), 512}, {&plain, 16}}) {
    const auto sampler = make(*factory, {.seed = 1234, .temperature = 1});
    std::vector<float> row(n, -60);
    row[3] = row[5] = 2;
    for (Position position = 0; position < 200; ++position) {
      const double u = uniform_double({key_from_seed(1234), position, Attempt::kFirst}, Stream::kDist);
      ASSERT_EQ(sampler->sample(row, position)->token, u < 0.5 ? TokenId{3} : TokenId{5}) << position;
    }
  }
}

// mu and the sums of adaptive-p are those that came with the last sampled token; a forced one leaves them alone.
TEST(SamplerCarry, IsTakenByAcceptAndRulesTheNextChoice) {
  const PlainSamplerFactory plain(512, TokenId{0});
  SamplingParams settings[2] = {{.mirostat = 2, .mirostat_tau = 2}, {.adaptive_target = 0.3f}};
  for (const bool adaptive : {false, true}) {
    for (const SamplerFactory* factory : {&chain(), static_cast<const SamplerFactory*>(&plain)}) {
      if (adaptive && factory != &chain()) continue;
      std::mt19937 random(6);
      const auto row = random_row(random, 512, false);
      const auto sampler = make(*factory, settings[adaptive]);
      const Choice start = *sampler->sample(row, 0);
      ASSERT_NE(start.carry.second, 0);
      ASSERT_TRUE(sampler->accept(start.token, TokenRole::kGenerated, start.carry));
      const SamplerCarry next = sampler->sample(row, 0)->carry;
      EXPECT_FALSE(next == start.carry);
      ASSERT_TRUE(sampler->accept(TokenId{9}, TokenRole::kGenerated, {}));
      ASSERT_TRUE(sampler->accept(TokenId{9}, TokenRole::kPrompt, {7, 7}));
      EXPECT_EQ(sampler->sample(row, 0)->carry, next);
      if (!adaptive) {
        ASSERT_TRUE(sampler->accept(TokenId{9}, TokenRole::kGenerated, {-100, 1}));
        for (Position position = 0; position < 20; ++position) {
          const auto best = std::max_element(row.begin(), row.end()) - row.begin();
          EXPECT_EQ(raw(sampler->sample(row, position)->token), best) << "a mu this low keeps the best alone";
        }
      }
    }
  }
}

TEST(ChainSampler, GreedyTakesTheSmallestOfTheBest) {
  const auto sampler = make(chain(), {.temperature = 0});
  std::vector<float> row(static_cast<std::size_t>(vocabulary().n_tokens()), 0);
  row[300] = row[40] = row[500] = 7;
  EXPECT_EQ(sampler->sample(row, 0)->token, TokenId{40});
  EXPECT_EQ(sampler->sample(row, 0)->margin, 0);
}

// The chosen token may not depend on anything but the set of candidates; here half of them tie.
TEST(ChainSampler, TiesAreChosenByProbability) {
  const auto n = static_cast<std::size_t>(vocabulary().n_tokens());
  std::vector<float> row(n, -20);
  row[10] = row[400] = row[200] = 1;
  const auto sampler = make(chain(), {.seed = 4, .temperature = 1});
  std::map<TokenId, int> counts;
  for (Position position = 0; position < 3000; ++position) ++counts[sampler->sample(row, position)->token];
  for (int id : {10, 200, 400}) EXPECT_NEAR(counts[TokenId{id}], 1000, 130) << id;
}

TEST(ChainSampler, MeasuresAreOfTheRawRow) {
  const auto n = static_cast<std::size_t>(vocabulary().n_tokens());
  std::vector<float> row(n, -kInf);
  row[5] = std::log(0.75f), row[6] = std::log(0.25f);
  const auto sampler = make(chain(), {.temperature = 0, .logit_bias = {{TokenId{5}, -kInf}}});
  const Choice choice = *sampler->sample(row, 0);
  EXPECT_EQ(choice.token, TokenId{6});
  EXPECT_NEAR(choice.logprob, std::log(0.25), 1e-6);
  EXPECT_NEAR(choice.entropy, -0.75 * std::log(0.75) - 0.25 * std::log(0.25), 1e-6);
  EXPECT_NEAR(choice.margin, std::log(3), 1e-6);
}

TEST(ChainSampler, PromptTokensCountForPenalties) {
  const auto n = static_cast<std::size_t>(vocabulary().n_tokens());
  std::vector<float> row(n, 0);
  row[7] = 2, row[8] = 1.9f;
  const auto sampler = make(chain(), {.temperature = 0, .repeat_penalty = 1.5f});
  EXPECT_EQ(sampler->sample(row, 0)->token, TokenId{7});
  ASSERT_TRUE(sampler->accept(TokenId{7}, TokenRole::kPrompt, {}));
  EXPECT_EQ(sampler->sample(row, 1)->token, TokenId{8});
}

// After a miss the second choice is drawn anew: reusing the first random number would favour what stands first.
TEST(ChainSampler, GrammarKeepsTheProportionsOfWhatItAllows) {
  const auto n = static_cast<std::size_t>(vocabulary().n_tokens());
  std::vector<float> row(n, -30);
  row['z'] = std::log(0.5f);  // not allowed, and first in order
  row['a'] = std::log(0.25f), row['b'] = std::log(0.25f);
  const auto sampler = make(chain(), {.seed = 8, .temperature = 1, .grammar = "root ::= [ab]"});
  int n_a = 0;
  constexpr int kN = 4000;
  for (Position position = 0; position < kN; ++position) {
    const TokenId token = sampler->sample(row, position)->token;
    ASSERT_TRUE(token == TokenId{'a'} || token == TokenId{'b'});
    n_a += token == TokenId{'a'};
  }
  EXPECT_NEAR(n_a, 0.5 * kN, 160);
}

TEST(ChainSampler, GrammarErrorsChangeNothing) {
  const auto n = static_cast<std::size_t>(vocabulary().n_tokens());
  std::mt19937 random(1);
  const auto row = random_row(random, n, false);
  const auto sampler = make(chain(), {.seed = 3, .grammar = "root ::= \"abc\""});
  ASSERT_TRUE(sampler->accept(TokenId{'a'}, TokenRole::kGenerated, {}));
  const Choice before = *sampler->sample(row, 5);
  for (const TokenId wrong : {TokenId{'a'}, ToyVocabulary::kEnd, ToyVocabulary::kControl}) {
    EXPECT_EQ(sampler->accept(wrong, TokenRole::kGenerated, {}).error().code, Code::kGrammar);
  }
  EXPECT_EQ(sampler->accept(TokenId{-1}, TokenRole::kGenerated, {}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(sampler->accept(TokenId{100000}, TokenRole::kPrompt, {}).error().code, Code::kInvalidArgument);
  EXPECT_TRUE(same(before, *sampler->sample(row, 5)));
  ASSERT_TRUE(sampler->accept(TokenId{'x'}, TokenRole::kPrompt, {})) << "the grammar does not rule the prompt";
}

TEST(ChainSampler, OnlyTheEndIsLeftOfAFinishedGrammar) {
  const auto n = static_cast<std::size_t>(vocabulary().n_tokens());
  std::mt19937 random(1);
  SamplingParams params{.grammar = "root ::= \"a\""};
  for (const bool ignore_eos : {false, true}) {
    params.ignore_eos = ignore_eos;
    const auto sampler = make(chain(), params);
    ASSERT_TRUE(sampler->accept(TokenId{'a'}, TokenRole::kGenerated, {}));
    const auto choice = sampler->sample(random_row(random, n, false), 1);
    if (ignore_eos) {
      ASSERT_FALSE(choice.has_value());
      EXPECT_EQ(choice.error().code, Code::kGrammar);
    } else {
      ASSERT_TRUE(choice.has_value());
      EXPECT_TRUE(vocabulary().ends_generation(choice->token));
    }
  }
}

TEST(ChainSampler, RefusesRowsThatAreNoRows) {
  const auto n = static_cast<std::size_t>(vocabulary().n_tokens());
  const auto sampler = make(chain(), {});
  std::vector<float> row(n, 0);
  row[100] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(sampler->sample(row, 0).error().code, Code::kEngine);
  row[100] = kInf;
  EXPECT_EQ(sampler->sample(row, 0).error().code, Code::kEngine);
  EXPECT_EQ(sampler->sample(std::vector<float>(n, -kInf), 0).error().code, Code::kEngine);
}

TEST(ChainSampler, RefusesBadCarries) {
  const auto sampler = make(chain(), {.mirostat = 2});
  for (const SamplerCarry carry : {SamplerCarry{std::nanf(""), 1}, {1, kInf}, {1, -1}}) {
    EXPECT_EQ(sampler->accept(TokenId{1}, TokenRole::kGenerated, carry).error().code, Code::kInvalidArgument);
  }
}

TEST(ChainSampler, FactoryRefusesWithTheFieldsName) {
  EXPECT_EQ(chain().make({.temperature = -1}).error().detail, "temperature");
  EXPECT_EQ(chain()
                .make({.grammar = "root ::= "
                                  "nowhere"})
                .error()
                .code,
            Code::kGrammar);
  EXPECT_EQ(chain().make({.json_schema = "{}"}).error().code, Code::kUnsupported);
}

TEST(PlainSampler, ToyGrammarRulesEachPlace) {
  const PlainSamplerFactory factory(16, TokenId{0});
  std::mt19937 random(2);
  const auto sampler = make(factory, {.grammar = "any-of:1,2;3"});
  for (const std::vector<int>& allowed : {std::vector<int>{1, 2}, {3}, {0}, {0}}) {
    const Choice choice = *sampler->sample(random_row(random, 16, false), 0);
    EXPECT_TRUE(std::count(allowed.begin(), allowed.end(), raw(choice.token)) == 1) << raw(choice.token);
    EXPECT_EQ(sampler->accept(TokenId{9}, TokenRole::kGenerated, {}).error().code, Code::kGrammar);
    ASSERT_TRUE(sampler->accept(TokenId{9}, TokenRole::kPrompt, {}));
    ASSERT_TRUE(sampler->accept(choice.token, TokenRole::kGenerated, choice.carry));
  }
  const auto cycle = make(factory, {.temperature = 0, .grammar = "cycle:4,5"});
  for (int want : {4, 5, 4, 5, 4}) {
    const Choice choice = *cycle->sample(random_row(random, 16, false), 0);
    EXPECT_EQ(choice.token, TokenId{want});
    ASSERT_TRUE(cycle->accept(choice.token, TokenRole::kGenerated, choice.carry));
  }
  for (const char* bad : {"cycle:", "cycle:1,", "cycle:99", "any-of:1;;2", "cycle:1;2", "x", "any-of:-1"}) {
    EXPECT_EQ(factory.make({.grammar = bad}).error().code, Code::kGrammar) << bad;
  }
}

}  // namespace
}  // namespace fermata
