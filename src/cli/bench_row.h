#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::cli {

// Of measured values: the smallest that half, that 99 % of them, and that all do not exceed. 0 if there are none.
struct Quantiles {
  std::size_t n = 0;
  double p50 = 0;
  double p99 = 0;
  double max = 0;
};
Quantiles quantiles_of(std::vector<double> values);

// What was measured, or on what: a JSON object, written in the order of its put().
class BenchRow {
 public:
  BenchRow& put(std::string_view key, std::string_view text);
  BenchRow& put(std::string_view key, double value);  // null if it is none
  BenchRow& put(std::string_view key, const std::vector<double>& values);
  BenchRow& put(std::string_view key, const BenchRow& row);
  // n, p50, p99 and max of values in ms, under "KEY_ms".
  BenchRow& put_spread(const std::string& key, std::vector<double> values_ms);
  std::string json() const { return "{" + fields_ + "}"; }

 private:
  void key(std::string_view key);
  std::string fields_;
};

// The whole result: the heads by name, then the rows.
std::string bench_json(const std::vector<std::pair<std::string, BenchRow>>& heads, const std::vector<BenchRow>& rows);

}  // namespace fermata::cli
