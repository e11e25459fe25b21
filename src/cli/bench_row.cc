#include "cli/bench_row.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "engine/llama/json_text.h"

namespace fermata::cli {
namespace {

std::string number(double value) {
  if (!std::isfinite(value)) return "null";  // JSON has no word for it
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

}  // namespace

Quantiles quantiles_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto at = [&](std::size_t percent) {  // rank: a hundredth of percent * n, rounded up; whole numbers, so that
    const std::size_t rank = (percent * values.size() + 99) / 100;  // 0.99 * 100 is 99
    return values[std::max<std::size_t>(rank, 1) - 1];
  };
  return {values.size(), at(50), at(99), at(100)};
}

void BenchRow::key(std::string_view key) {
  if (!fields_.empty()) fields_ += ", ";
  fields_ += json_string(key) + ": ";
}

BenchRow& BenchRow::put(std::string_view name, std::string_view text) {
  key(name);
  fields_ += json_string(text);
  return *this;
}

BenchRow& BenchRow::put(std::string_view name, double value) {
  key(name);
  fields_ += number(value);
  return *this;
}

BenchRow& BenchRow::put(std::string_view name, const std::vector<double>& values) {
  key(name);
  fields_ += '[';
  for (std::size_t i = 0; i < values.size(); ++i) fields_ += (i ? ", " : "") + number(values[i]);
  fields_ += ']';
  return *this;
}

BenchRow& BenchRow::put(std::string_view name, const BenchRow& row) {
  key(name);
  fields_ += row.json();
  return *this;
}

BenchRow& BenchRow::put_spread(const std::string& name, std::vector<double> values_ms) {
  const Quantiles spread = quantiles_of(std::move(values_ms));
  return put(name + "_ms", BenchRow()
                               .put("n", static_cast<double>(spread.n))
                               .put("p50", spread.p50)
                               .put("p99", spread.p99)
                               .put("max", spread.max));
}

std::string bench_json(const std::vector<std::pair<std::string, BenchRow>>& heads, const std::vector<BenchRow>& rows) {
  std::string text = "{";
  for (const auto& [name, head] : heads) text += json_string(name) + ": " + head.json() + ",\n ";
  text += "\"rows\": [";
  for (std::size_t i = 0; i < rows.size(); ++i) text += (i ? ",\n  " : "\n  ") + rows[i].json();
  return text + "\n]}\n";
}

}  // namespace fermata::cli
