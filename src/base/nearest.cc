#include "base/nearest.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace fermata {

std::string_view nearest(std::string_view word, std::span<const std::string_view> known) {
  constexpr std::size_t kLettersMax = 48;
  if (word.empty() || word.size() > kLettersMax) return {};
  std::size_t best = std::min<std::size_t>(3, (word.size() + 2) / 3 + 1);  // this many changes are too many
  std::string_view found;
  std::vector<std::size_t> row;
  for (const std::string_view candidate : known) {
    row.resize(candidate.size() + 1);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= word.size(); ++i) {  // Levenshtein's distance, row by row
      std::size_t diagonal = std::exchange(row[0], i);
      for (std::size_t j = 1; j < row.size(); ++j) {
        const std::size_t changed = diagonal + (word[i - 1] == candidate[j - 1] ? 0 : 1);
        diagonal = std::exchange(row[j], std::min({changed, row[j] + 1, row[j - 1] + 1}));
      }
    }
    if (row.back() < best) {
      best = row.back();
      found = candidate;
    }
  }
  return found;
}

}  // namespace fermata
