#include "engine/sampling/history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <random>

#include "engine/sampling/dry.h"
#include "engine/sampling/toy_vocabulary.h"

namespace fermata {
namespace {

TEST(History, KeepsTheLastTokens) {
  std::mt19937 random(1);
  for (std::size_t capacity : {0u, 1u, 2u, 7u, 64u}) {
    History history(capacity);
    std::deque<TokenId> want;
    for (int i = 0; i < 300; ++i) {
      const TokenId token{static_cast<std::int32_t>(random() % 50)};
      history.push(token);
      want.push_front(token);
      if (want.size() > capacity) want.pop_back();
      ASSERT_EQ(history.size(), want.size());
      for (std::size_t back = 0; back < want.size(); ++back) ASSERT_EQ(history.from_newest(back), want[back]);
    }
  }
}

TEST(Penalties, CountWithinTheWindowAlone) {
  History history(10);
  for (int token : {3, 1, 2, 2, 3}) history.push(TokenId{token});
  std::vector<std::int32_t> counts;
  std::vector<float> row = {1, 2, -2, 4, 5};
  apply_penalties({3, 2.0f, 0.5f, 0.25f}, history, row, counts);  // the last three: 2 2 3
  EXPECT_EQ(row, (std::vector<float>{1, 2, -4 - 1.25f, 2 - 0.75f, 5}));
  std::vector<float> again = {1, 2, -2, 4, 5};
  apply_penalties({3, 2.0f, 0.5f, 0.25f}, history, again, counts);
  EXPECT_EQ(again, row) << "the counts of one call must not leak into the next";
}

// The definition, slowly: for each earlier place, how long the text before it equals the text before the end.
std::vector<float> slow_dry(const DryParams& params, const std::vector<TokenId>& breakers,
                            const std::vector<TokenId>& text, std::vector<float> row) {
  const std::size_t n = std::min(params.last_n, text.size());
  const std::vector<TokenId> t(text.end() - static_cast<std::ptrdiff_t>(n), text.end());
  const auto allowed = static_cast<std::size_t>(params.allowed_length);
  const auto is_breaker = [&](TokenId token) { return std::count(breakers.begin(), breakers.end(), token) > 0; };
  std::size_t limit = 0;
  while (limit < n && !is_breaker(t[n - 1 - limit])) ++limit;
  std::map<TokenId, std::size_t> longest;
  for (std::size_t next = 1; next < n; ++next) {
    std::size_t length = 0;
    while (length < std::min(limit, next) && t[next - 1 - length] == t[n - 1 - length]) ++length;
    if (length >= allowed) longest[t[next]] = std::max(longest[t[next]], length);
  }
  if (n <= allowed || limit < allowed) return row;
  for (const auto& [token, length] : longest) {
    if (is_breaker(token)) continue;
    row[static_cast<std::size_t>(raw(token))] -=
        params.multiplier * std::pow(params.base, static_cast<float>(length - allowed));
  }
  return row;
}

TEST(Dry, AgreesWithItsDefinition) {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    DryParams params{0.8f, 1.75f, static_cast<std::int32_t>(1 + random() % 3), 5 + random() % 60};
    History history(params.last_n);
    std::vector<TokenId> text;
    DryBreakers breakers;
    std::vector<TokenId> breaker_tokens;
    if (random() % 2) {
      breaker_tokens = {TokenId{0}};
      breakers.tails[TokenId{0}] = {{}};
    }
    for (auto n = random() % 100; n > 0; --n) {
      text.push_back(TokenId{static_cast<std::int32_t>(random() % 4)});
      history.push(text.back());
    }
    std::vector<float> row = {0, 1, 2, 3, 4};
    const auto want = slow_dry(params, breaker_tokens, text, row);
    apply_dry(params, breakers, history, row);
    for (std::size_t i = 0; i < row.size(); ++i) ASSERT_NEAR(row[i], want[i], 1e-3 * (1 + std::fabs(want[i])));
  }
}

TEST(Dry, BreakersAreTokensThatContainOrBeginThem) {
  const ToyVocabulary vocabulary(0);
  const std::string strings[] = {"ab", "<control>"};
  const DryBreakers breakers = make_dry_breakers(vocabulary, strings);
  EXPECT_FALSE(breakers.is_single(TokenId{'a'}));
  ASSERT_EQ(breakers.tails.at(TokenId{'a'}).size(), 1u);
  EXPECT_EQ(breakers.tails.at(TokenId{'a'})[0], std::vector<TokenId>{TokenId{'b'}});
  EXPECT_EQ(breakers.tails.count(TokenId{'b'}), 0u);
  EXPECT_TRUE(breakers.is_single(ToyVocabulary::kControl));
}

// A repetition may not reach across "ab": with it between, the repeated c d is not seen as longer.
TEST(Dry, LongBreakersStopARepetition) {
  const ToyVocabulary vocabulary(0);
  const std::string strings[] = {"ab"};
  const DryBreakers breakers = make_dry_breakers(vocabulary, strings);
  const DryParams params{1, 2, 1, 100};
  const auto penalty = [&](const std::string& text) {
    History history(100);
    for (char c : text) history.push(TokenId{static_cast<std::uint8_t>(c)});
    std::vector<float> row(259, 0);
    apply_dry(params, breakers, history, row);
    return -row['x'];
  };
  EXPECT_EQ(penalty("qrabcdx_qrabcd"), 2.0f);   // c d: length 2, allowed 1
  EXPECT_EQ(penalty("qrbacdx_qrbacd"), 32.0f);  // q r b a c d: length 6
}

}  // namespace
}  // namespace fermata
