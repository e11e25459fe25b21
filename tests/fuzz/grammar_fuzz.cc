// Any grammar text, any tokens, any rows: nothing crashes, hangs or grows without bound; three ways to ask what a
// grammar allows agree; what sample() chooses, accept() takes; a fold equals what it folds.
//   input = n, n token bytes, settings byte, grammar text
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/sampling/chain_sampler.h"
#include "engine/sampling/grammar/matcher.h"
#include "engine/sampling/toy_vocabulary.h"

namespace fermata {
namespace {

struct World {
  std::shared_ptr<const ToyVocabulary> vocabulary = std::make_shared<ToyVocabulary>(61);
  std::shared_ptr<const TokenIndex> tokens = std::make_shared<TokenIndex>(*vocabulary);
  ChainSamplerFactory factory{vocabulary, {}, {}};
};

const World& world() {
  static const World shared;
  return shared;
}

TokenId token_of(std::uint8_t byte, std::size_t place) {
  const auto n = static_cast<std::size_t>(world().vocabulary->n_tokens());
  return TokenId{static_cast<std::int32_t>((byte + 37 * (place % 3)) % n)};
}

bool in(std::span<const std::uint64_t> mask, TokenId token) {
  const auto i = static_cast<std::size_t>(raw(token));
  return mask[i >> 6] >> (i & 63) & 1;
}

void walk(const std::shared_ptr<const Grammar>& grammar, std::span<const std::uint8_t> choices) {
  Matcher matcher(grammar, world().tokens);
  if (matcher.dead()) return;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const TokenId token = token_of(choices[i], i);
    const bool allowed = matcher.allows(token);
    if (i % 4 == 0) FERMATA_CHECK_EQ(in(matcher.allowed(), token), allowed);
    Matcher copy = matcher;
    FERMATA_CHECK_EQ(matcher.advance(token), allowed);
    FERMATA_CHECK_EQ(copy.advance(token), allowed);
    FERMATA_CHECK_EQ(copy.complete(), matcher.complete());
  }
}

std::vector<float> row_of(std::uint8_t byte) {
  std::vector<float> row(static_cast<std::size_t>(world().vocabulary->n_tokens()));
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<float>((i * (byte | 1u)) % 17) - 8;
  if (byte % 8 == 3) row[byte] = -std::numeric_limits<float>::infinity();
  if (byte % 32 == 7) row[byte] = std::nanf("");
  if (byte % 32 == 9) row[byte] = 1e38f;
  return row;
}

void generate(std::string_view text, std::uint8_t setting, std::span<const std::uint8_t> rows) {
  SamplingParams params;
  params.grammar = text;
  params.seed = setting;
  params.temperature = setting % 4 == 0 ? 0 : 0.8f;
  params.mirostat = setting % 5 == 1 ? 2 : setting % 5 == 2 ? 1 : 0;
  if (setting % 5 == 3) params.adaptive_target = 0.4f;
  params.top_k = setting & 64 ? 0 : 20;
  params.repeat_penalty = setting & 128 ? 1.2f : 1;
  params.dry_multiplier = setting & 32 ? 0.8f : 0;
  auto made = world().factory.make(params);
  if (!made) return;
  Sampler& sampler = **made;
  auto folded = sampler.clone();
  Position position = 0;
  for (const std::uint8_t byte : rows) {
    const auto row = row_of(byte);
    const auto choice = sampler.sample(row, position);
    const auto same = folded->sample(row, position);
    FERMATA_CHECK_EQ(choice.has_value(), same.has_value());
    if (!choice) continue;
    FERMATA_CHECK(choice->token == same->token && choice->carry == same->carry);
    FERMATA_CHECK(sampler.accept(choice->token, TokenRole::kGenerated, choice->carry).has_value());
    FERMATA_CHECK(folded->accept(choice->token, TokenRole::kGenerated, choice->carry).has_value());
    if (byte % 5 == 0) folded = sampler.clone();
    ++position;
  }
}

}  // namespace
}  // namespace fermata

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::size_t n = std::min<std::size_t>(data[0] % 32, size - 2);
  const std::span<const std::uint8_t> choices(data + 1, n);
  const std::uint8_t setting = data[1 + n];
  const std::string_view text(reinterpret_cast<const char*>(data + 2 + n), size - 2 - n);
  const auto grammar = fermata::Grammar::parse(text, [](std::string_view) { return fermata::ToyVocabulary::kControl; });
  if (grammar) fermata::walk(*grammar, choices);
  fermata::generate(text, setting, choices);
  return 0;
}
