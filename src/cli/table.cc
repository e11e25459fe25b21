#include "cli/table.h"

#include <algorithm>
#include <cstddef>

#include "base/text_width.h"

namespace fermata::cli {

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += row[i];
      if (i + 1 < row.size()) text.append(widths[i] - columns_of(row[i]) + 2, ' ');
    }
    text += '\n';
  }
  return text;
}

std::string age(double n_seconds) {
  const auto n = static_cast<long long>(std::clamp(n_seconds, 0.0, 1e12));
  if (n < 60) return std::to_string(n) + "s";
  if (n < 3600) return std::to_string(n / 60) + "m";
  if (n < 86400) return std::to_string(n / 3600) + "h";
  return std::to_string(n / 86400) + "d";
}

}  // namespace fermata::cli
