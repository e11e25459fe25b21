#include "engine/sampling/dry.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

namespace fermata {
namespace {

constexpr std::size_t kTailTokensMax = 20;
constexpr float kLogOfFloatMax = 88.7228391f;

void add(DryBreakers& breakers, TokenId head, std::vector<TokenId> tail) {
  tail.resize(std::min(tail.size(), kTailTokensMax));
  auto& tails = breakers.tails[head];
  const bool known = std::any_of(tails.begin(), tails.end(), [&](const auto& other) { return other == tail; });
  if (!known) tails.push_back(std::move(tail));
}

// The word contains the breaker, or ends with a beginning of it.
void add_overlaps(DryBreakers& breakers, const Vocabulary& vocabulary, TokenId token, std::string_view word,
                  const std::string& breaker) {
  if (word.find(breaker) != std::string_view::npos) return add(breakers, token, {});
  for (std::size_t place = 0; (place = word.find(breaker[0], place)) != std::string_view::npos; ++place) {
    const std::size_t overlap = word.size() - place;
    if (overlap >= breaker.size() || breaker.compare(0, overlap, word.substr(place)) != 0) continue;
    add(breakers, token, vocabulary.tokenize(std::string_view(breaker).substr(overlap), Markers::kPlain));
  }
}

// How far back a repetition may reach: to the newest breaker. Of several that begin at one token the longest counts.
std::size_t repetition_limit(const DryBreakers& breakers, const History& history, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const auto found = breakers.tails.find(history.from_newest(i));
    if (found == breakers.tails.end()) continue;
    bool matched = false;
    std::size_t longest = 0;
    for (const auto& tail : found->second) {
      bool match = tail.size() <= i;
      for (std::size_t j = 0; match && j < tail.size(); ++j) match = tail[j] == history.from_newest(i - 1 - j);
      if (!match) continue;
      matched = true;
      longest = std::max(longest, tail.size());
    }
    if (matched) return i - longest;
  }
  return n;
}

// z[k] = for how many tokens the text that ends k tokens ago equals the text that ends now (the Z-function of the
// window read from its end).
std::vector<std::size_t> suffix_matches(const std::vector<TokenId>& newest_first) {
  const std::size_t n = newest_first.size();
  std::vector<std::size_t> z(n, 0);
  std::size_t left = 0, right = 0;  // [left, right): the match that reaches farthest so far
  for (std::size_t k = 1; k < n; ++k) {
    std::size_t length = k < right ? std::min(z[k - left], right - k) : 0;
    while (k + length < n && newest_first[length] == newest_first[k + length]) ++length;
    z[k] = length;
    if (k + length > right) left = k, right = k + length;
  }
  return z;
}

}  // namespace

bool DryBreakers::is_single(TokenId token) const {
  const auto found = tails.find(token);
  if (found == tails.end()) return false;
  return std::any_of(found->second.begin(), found->second.end(), [](const auto& tail) { return tail.empty(); });
}

DryBreakers make_dry_breakers(const Vocabulary& vocabulary, std::span<const std::string> strings) {
  DryBreakers breakers;
  for (const std::string& breaker : strings) {
    if (breaker.empty()) continue;
    for (std::int32_t i = 0; i < vocabulary.n_tokens(); ++i) {
      add_overlaps(breakers, vocabulary, TokenId{i}, vocabulary.bytes(TokenId{i}), breaker);
    }
    // Control tokens have no bytes; a breaker that is the name of one means that token.
    const auto special = vocabulary.tokenize(breaker, Markers::kParse);
    if (special.size() == 1 && vocabulary.is_control(special[0])) add(breakers, special[0], {});
  }
  return breakers;
}

void apply_dry(const DryParams& params, const DryBreakers& breakers, const History& history, std::span<float> row) {
  const std::size_t n = std::min(params.last_n, history.size());
  const auto allowed = static_cast<std::size_t>(params.allowed_length);
  if (n <= allowed) return;
  const std::size_t limit = repetition_limit(breakers, history, n);
  if (limit < allowed) return;
  std::vector<TokenId> newest_first(n);
  for (std::size_t i = 0; i < n; ++i) newest_first[i] = history.from_newest(i);
  const auto z = suffix_matches(newest_first);
  std::map<TokenId, std::size_t> longest;  // by the token that would make the repetition longer
  for (std::size_t k = 1; k < n; ++k) {
    const std::size_t length = std::min(z[k], limit);
    if (length < allowed) continue;
    auto& best = longest[newest_first[k - 1]];
    best = std::max(best, length);
  }
  const int exponent_max = params.base > 1.000001f ? static_cast<int>(kLogOfFloatMax / std::log(params.base)) : 0;
  for (const auto& [token, length] : longest) {
    if (breakers.is_single(token)) continue;
    int exponent = static_cast<int>(length - allowed);
    if (exponent_max > 0) exponent = std::min(exponent, exponent_max);
    const double power = std::pow(static_cast<double>(params.base), exponent);
    row[static_cast<std::size_t>(raw(token))] -= static_cast<float>(static_cast<double>(params.multiplier) * power);
  }
}

}  // namespace fermata
