// Against libllama's own samplers, on the vocabulary of the shipped model.
#include "engine/llama/sampling/samplers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "engine/llama/sampling/json_schema.h"
#include "engine/llama/vocabulary.h"
#include "engine/sampling/candidates.h"
#include "engine/sampling/chance.h"
#include "engine/sampling/dry.h"
#include "engine/sampling/grammar/matcher.h"
#include "engine/sampling/truncate.h"
#include "llama.h"

namespace fermata {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Model {
  Model() {
    llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
    llama_model_params params = llama_model_default_params();
    params.vocab_only = true;
    const char* path = std::getenv("FERMATA_MODEL");
    model = llama_model_load_from_file(path ? path : FERMATA_SHIPPED_MODEL, params);
    FERMATA_CHECK(model != nullptr);
    vocab = llama_model_get_vocab(model);
    n_vocab = llama_vocab_n_tokens(vocab);
    vocabulary = std::shared_ptr<const LlamaVocabulary>(std::move(*LlamaVocabulary::make(model)));
    tokens = std::make_shared<TokenIndex>(*vocabulary);
    factory = make_llama_samplers(model);
  }
  llama_model* model;
  const llama_vocab* vocab;
  std::int32_t n_vocab;
  std::shared_ptr<const LlamaVocabulary> vocabulary;
  std::shared_ptr<const TokenIndex> tokens;
  std::unique_ptr<SamplerFactory> factory;
};

const Model& model() {
  static const Model shared;
  return shared;
}

std::vector<float> random_row(std::mt19937& random) {
  std::normal_distribution<float> normal(0, 2.5f);
  std::vector<float> row(static_cast<std::size_t>(model().n_vocab));
  for (float& logit : row) logit = normal(random);
  for (int i = 0; i < 6; ++i) row[random() % row.size()] = 10 + normal(random);
  return row;
}

struct FreeSampler {
  void operator()(llama_sampler* sampler) const { llama_sampler_free(sampler); }
};
using TheirSampler = std::unique_ptr<llama_sampler, FreeSampler>;

// A row as libllama's samplers want it.
struct Theirs {
  explicit Theirs(const std::vector<float>& row) {
    for (std::size_t i = 0; i < row.size(); ++i) data.push_back({static_cast<llama_token>(i), row[i], 0});
    array = {data.data(), data.size(), -1, false};
  }
  void apply(llama_sampler* sampler) {
    const TheirSampler owned(sampler);
    llama_sampler_apply(sampler, &array);
  }
  std::vector<llama_token_data> data;
  llama_token_data_array array;
};

struct Ours {
  explicit Ours(const std::vector<float>& values) : row(values) {
    scan_row(row, scan);
    candidates = std::make_unique<Candidates>(row, scan, scratch);
  }
  std::vector<float> row;
  RowScan scan;
  CandidateScratch scratch;
  std::unique_ptr<Candidates> candidates;
};

std::map<std::int32_t, float> left(const llama_token_data_array& array) {
  std::map<std::int32_t, float> logits;
  for (std::size_t i = 0; i < array.size; ++i) {
    if (array.data[i].logit != -kInf) logits[array.data[i].id] = array.data[i].logit;
  }
  return logits;
}

std::map<std::int32_t, float> left(Candidates& candidates) {
  std::map<std::int32_t, float> logits;
  for (const Candidate& candidate : candidates.all()) logits[raw(candidate.id)] = candidate.logit;
  return logits;
}

struct Law {
  const char* name;
  std::function<void(Candidates&)> ours;
  std::function<llama_sampler*()> theirs;
  std::size_t tolerance = 0;  // candidates at the edge: sums over a whole row are rounded differently
};

// Truncations and temperatures, alone on a whole row and behind top-k.
TEST(AgainstLlama, TruncationsKeepTheSameTokens) {
  const Law laws[] = {
      {"top_k", [](auto& c) { keep_top_k(c, 50); }, [] { return llama_sampler_init_top_k(50); }},
      {"top_k, large", [](auto& c) { keep_top_k(c, 3000); }, [] { return llama_sampler_init_top_k(3000); }},
      {"top_p", [](auto& c) { keep_top_p(c, 0.9f, 1); }, [] { return llama_sampler_init_top_p(0.9f, 1); }, 2},
      {"min_p", [](auto& c) { keep_min_p(c, 0.02f, 1); }, [] { return llama_sampler_init_min_p(0.02f, 1); }},
      {"typical", [](auto& c) { keep_typical(c, 0.6f, 1); }, [] { return llama_sampler_init_typical(0.6f, 1); }, 2},
      {"top_n_sigma", [](auto& c) { keep_top_n_sigma(c, 1.5f); }, [] { return llama_sampler_init_top_n_sigma(1.5f); },
       2},
      {"temperature", [](auto& c) { apply_temperature(c, 0.7f); }, [] { return llama_sampler_init_temp(0.7f); }},
      {"xtc, always", [](auto& c) { exclude_top_choices(c, 1, 0.05f, 1, 0.5f); },
       [] { return llama_sampler_init_xtc(1, 0.05f, 1, 1); }},
  };
  std::mt19937 random(1);
  for (int round = 0; round < 12; ++round) {
    const auto row = random_row(random);
    for (const Law& law : laws) {
      for (const bool behind_top_k : {false, true}) {
        Ours ours(row);
        Theirs theirs(row);
        if (behind_top_k) {
          keep_top_k(*ours.candidates, 60);
          theirs.apply(llama_sampler_init_top_k(60));
        }
        law.ours(*ours.candidates);
        theirs.apply(law.theirs());
        const auto a = left(*ours.candidates), b = left(theirs.array);
        std::size_t n_different = 0;
        for (const auto& [id, logit] : a) {
          const auto other = b.find(id);
          n_different += other == b.end();
          if (other != b.end()) {
            ASSERT_EQ(logit, other->second) << law.name;
          }
        }
        for (const auto& [id, logit] : b) n_different += a.count(id) == 0;
        EXPECT_LE(n_different, behind_top_k ? 0 : law.tolerance) << law.name << (behind_top_k ? " behind top_k" : "");
      }
    }
  }
}

TEST(AgainstLlama, DynamicTemperatureIsTheSame) {
  std::mt19937 random(2);
  for (int round = 0; round < 12; ++round) {
    const auto row = random_row(random);
    Ours ours(row);
    Theirs theirs(row);
    keep_top_k(*ours.candidates, 100);
    theirs.apply(llama_sampler_init_top_k(100));
    apply_dynamic_temperature(*ours.candidates, 0.8f, 0.6f, 1.2f);
    theirs.apply(llama_sampler_init_temp_ext(0.8f, 0.6f, 1.2f));
    EXPECT_EQ(left(*ours.candidates), left(theirs.array));
  }
}

// Given the same random numbers: the generator that libllama's samplers hide, beside it.
TEST(AgainstLlama, DistChoosesTheSameTokens) {
  const TheirSampler dist(llama_sampler_init_dist(77));
  std::mt19937 generator(77), random(3);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  for (int round = 0; round < 60; ++round) {
    const auto row = random_row(random);
    Ours ours(row);
    Theirs theirs(row);
    keep_top_k(*ours.candidates, 100);
    theirs.apply(llama_sampler_init_top_k(100));
    llama_sampler_apply(dist.get(), &theirs.array);
    EXPECT_EQ(raw(choose_dist(*ours.candidates, uniform(generator))),
              theirs.data[static_cast<std::size_t>(theirs.array.selected)].id);
  }
}

TEST(AgainstLlama, XtcThrowsTheSame) {
  const TheirSampler xtc(llama_sampler_init_xtc(0.4f, 0.05f, 1, 78));
  std::mt19937 generator(78), random(4);
  std::uniform_real_distribution<float> uniform(0.0f, 1.0f);
  int n_excluded = 0;
  for (int round = 0; round < 60; ++round) {
    const auto row = random_row(random);
    Ours ours(row);
    Theirs theirs(row);
    keep_top_k(*ours.candidates, 100);
    theirs.apply(llama_sampler_init_top_k(100));
    llama_sampler_apply(xtc.get(), &theirs.array);
    exclude_top_choices(*ours.candidates, 0.4f, 0.05f, 1, uniform(generator));
    EXPECT_EQ(left(*ours.candidates), left(theirs.array));
    n_excluded += theirs.array.size < 100;
  }
  EXPECT_GT(n_excluded, 5);
}

// discrete_distribution draws one canonical double. mu travels with ours as a carry, in theirs unseen; one false mu and
// the lists part.
TEST(AgainstLlama, MirostatChoosesTheSameTokensAndKeepsTheSameMu) {
  for (const int version : {1, 2}) {
    const TheirSampler mirostat(version == 1 ? llama_sampler_init_mirostat(model().n_vocab, 79, 5, 0.1f, 100)
                                             : llama_sampler_init_mirostat_v2(79, 5, 0.1f));
    std::mt19937 generator(79), random(5);
    const MirostatParams params{5, 0.1f, model().n_vocab};
    SamplerCarry carry = mirostat_start(params);
    int n_different = 0;
    for (int round = 0; round < 60; ++round) {
      const auto row = random_row(random);
      Ours ours(row);
      Theirs theirs(row);
      apply_temperature(*ours.candidates, 0.9f);
      theirs.apply(llama_sampler_init_temp(0.9f));
      llama_sampler_apply(mirostat.get(), &theirs.array);
      const double u = std::generate_canonical<double, 53>(generator);
      const Chosen chosen = version == 1 ? choose_mirostat_v1(*ours.candidates, params, carry, u)
                                         : choose_mirostat_v2(*ours.candidates, params, carry, u);
      carry = chosen.carry;
      n_different += raw(chosen.token) != theirs.data[static_cast<std::size_t>(theirs.array.selected)].id;
    }
    EXPECT_LE(n_different, 1) << version;  // a number that falls on the edge of two tokens
  }
}

TEST(AgainstLlama, AdaptiveChoosesTheSameTokensAndKeepsTheSameSums) {
  const TheirSampler adaptive(llama_sampler_init_adaptive_p(0.3f, 0.9f, 80));
  std::mt19937 generator(80), random(6);
  const AdaptiveParams params{0.3f, 0.9f};
  SamplerCarry carry = adaptive_start(params);
  for (int round = 0; round < 100; ++round) {
    const auto row = random_row(random);
    Ours ours(row);
    Theirs theirs(row);
    keep_top_k(*ours.candidates, 40);
    theirs.apply(llama_sampler_init_top_k(40));
    llama_sampler_apply(adaptive.get(), &theirs.array);
    const auto& theirs_chosen = theirs.array.data[theirs.array.selected];
    llama_sampler_accept(adaptive.get(), theirs_chosen.id);
    const Chosen chosen =
        choose_adaptive(*ours.candidates, params, carry, std::generate_canonical<double, 53>(generator));
    carry = chosen.carry;
    ASSERT_EQ(raw(chosen.token), theirs_chosen.id) << round;
  }
}

TEST(AgainstLlama, PenaltiesAndDryChangeTheSameLogits) {
  std::mt19937 random(7);
  const std::vector<std::string> strings = {"\n", ":", "\"", "*", "end of"};
  std::vector<const char*> c_strings;
  for (const auto& text : strings) c_strings.push_back(text.c_str());
  const auto& m = model();
  const DryBreakers breakers = make_dry_breakers(*m.vocabulary, strings);
  const TheirSampler made_dry(llama_sampler_init_dry(m.vocab, 0.8f, 1.75f, 2, 200, c_strings.data(), c_strings.size()));
  for (int round = 0; round < 30; ++round) {
    const TheirSampler dry(llama_sampler_clone(made_dry.get()));
    const TheirSampler penalties(llama_sampler_init_penalties(m.n_vocab, 50, 1.2f, 0.3f, 0.1f));
    History history(200);
    // Few words, newlines among them, so that much repeats.
    const auto words = m.vocabulary->tokenize("the end of the story:\n of a * dog and the dog", Markers::kPlain);
    for (int i = 0; i < 150; ++i) {
      const TokenId token = words[random() % (round % 2 ? words.size() : 4)];
      history.push(token);
      llama_sampler_accept(dry.get(), raw(token));
      llama_sampler_accept(penalties.get(), raw(token));
    }
    auto row = random_row(random);
    Theirs theirs(row);
    llama_sampler_apply(penalties.get(), &theirs.array);
    llama_sampler_apply(dry.get(), &theirs.array);
    std::vector<std::int32_t> counts;
    apply_penalties({50, 1.2f, 0.3f, 0.1f}, history, row, counts);
    apply_dry({0.8f, 1.75f, 2, 200}, breakers, history, row);
    for (std::size_t i = 0; i < row.size(); ++i) {
      ASSERT_NEAR(row[i], theirs.data[i].logit, 1e-5 * (1 + std::fabs(row[i]))) << "token " << i << " round " << round;
    }
  }
}

// The defaults, end to end: the frequencies of our choices are those of libllama's chain.
TEST(AgainstLlama, DefaultChainHasTheSameDistribution) {
  std::mt19937 random(8);
  const auto row = random_row(random);
  Theirs theirs(row);
  theirs.apply(llama_sampler_init_top_k(40));
  theirs.apply(llama_sampler_init_top_p(0.95f, 1));
  theirs.apply(llama_sampler_init_min_p(0.05f, 1));
  theirs.apply(llama_sampler_init_temp(0.8f));
  theirs.apply(llama_sampler_init_dist(1));
  const auto sampler = std::move(*model().factory->make({.seed = 5}));
  std::map<std::int32_t, int> counts;
  constexpr int kN = 4000;
  for (Position position = 0; position < kN; ++position) ++counts[raw(sampler->sample(row, position)->token)];
  std::size_t n_chosen = 0;
  for (std::size_t i = 0; i < theirs.array.size; ++i) {
    const auto& candidate = theirs.array.data[i];
    const double p = static_cast<double>(candidate.p);
    n_chosen += counts.count(candidate.id);
    EXPECT_NEAR(counts[candidate.id], kN * p, 5 * std::sqrt(kN * p * (1 - p)) + 1) << candidate.id;
  }
  EXPECT_EQ(n_chosen, counts.size()) << "a token was chosen that libllama's chain never chooses";
}

// Random walks through grammars: at each step the same tokens are allowed.
TEST(AgainstLlama, GrammarsAllowTheSameTokens) {
  const char* const schema =
      R"({"type":"object","properties":{"name":{"type":"string","maxLength":12},"age":{"type":"integer","minimum":3,"maximum":120},
      "tags":{"type":"array","items":{"enum":["a","b\"c",null]},"minItems":1},"when":{"type":"string","format":"date"}},
      "required":["name","age"],"additionalProperties":false})";
  const auto from_schema = json_schema_grammar(schema);
  ASSERT_TRUE(from_schema.has_value()) << from_schema.error().message;
  const std::vector<std::string> grammars = {
      *from_schema,
      "root ::= (\"yes\" | \"no\" | [\xC3\xA0-\xC3\xBF]+) (\", \" [^a-m\\n]{2,9})*",
      "root ::= list\nlist ::= \"(\" (list | [0-9]+ | \"\xE6\xBC\xA2\" .)* \")\" \" \"?",
  };
  std::mt19937 random(9);
  const auto& m = model();
  for (const std::string& text : grammars) {
    auto grammar = Grammar::parse(text, {});
    ASSERT_TRUE(grammar.has_value()) << grammar.error().message;
    for (int round = 0; round < 3; ++round) {
      Matcher ours(*grammar, m.tokens);
      const TheirSampler theirs(llama_sampler_init_grammar(m.vocab, text.c_str(), "root"));
      ASSERT_NE(theirs, nullptr);
      for (int step = 0; step < 20; ++step) {
        Theirs all(std::vector<float>(static_cast<std::size_t>(m.n_vocab), 0.0f));
        llama_sampler_apply(theirs.get(), &all.array);
        const auto mask = ours.allowed();
        std::vector<TokenId> fitting;
        for (std::int32_t i = 0; i < m.n_vocab; ++i) {
          const bool allowed = mask[static_cast<std::size_t>(i) >> 6] >> (i & 63) & 1;
          // libllama lets a grammar spell out control tokens; here text alone is ruled by it.
          const bool control = m.vocabulary->is_control(TokenId{i}) && !m.vocabulary->ends_generation(TokenId{i});
          // Nor does it know tokens that begin with a zero byte.
          const bool zero = m.vocabulary->bytes(TokenId{i}).starts_with('\0');
          if (!control && !zero) {
            ASSERT_EQ(allowed, all.data[static_cast<std::size_t>(i)].logit == 0)
                << text << "\nstep " << step << " token " << i << " '" << m.vocabulary->bytes(TokenId{i}) << "'";
          }
          if (allowed && !m.vocabulary->ends_generation(TokenId{i})) fitting.push_back(TokenId{i});
        }
        if (fitting.empty()) break;
        const TokenId next = fitting[random() % fitting.size()];
        ASSERT_TRUE(ours.advance(next));
        llama_sampler_accept(theirs.get(), raw(next));
      }
    }
  }
}

// Everything together on the real vocabulary: what lived, what is folded and what is cloned choose alike.
TEST(LlamaSamplers, FoldIsTheOnlyState) {
  std::mt19937 random(10);
  SamplingParams settings[4];
  settings[0] = {.repeat_last_n = -1, .repeat_penalty = 1.2f, .dry_multiplier = 0.8f};
  settings[1] = {.mirostat = 2};
  settings[2] = {.adaptive_target = 0.4f};
  settings[3].json_schema = R"({"type":"array","items":{"type":"string"}})";
  for (SamplingParams& params : settings) {
    params.seed = random();
    auto lived = std::move(*model().factory->make(params));
    std::vector<std::pair<TokenId, SamplerCarry>> tokens;
    for (int step = 0; step < 12; ++step) {
      const auto row = random_row(random);
      auto folded = std::move(*model().factory->make(params));
      for (const auto& [token, carry] : tokens) ASSERT_TRUE(folded->accept(token, TokenRole::kGenerated, carry));
      const Choice a = *lived->sample(row, step), b = *folded->sample(row, step),
                   c = *lived->clone()->sample(row, step);
      ASSERT_TRUE(a.token == b.token && a.token == c.token && a.carry == b.carry && a.logprob == b.logprob);
      tokens.emplace_back(a.token, a.carry);
      ASSERT_TRUE(lived->accept(a.token, TokenRole::kGenerated, a.carry));
    }
  }
}

}  // namespace
}  // namespace fermata
