#include "cli/bench_row.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

namespace fermata::cli {
namespace {

TEST(BenchRow, WritesJsonInOrder) {
  BenchRow row;
  row.put("part", "decode")
      .put("streams", 4)
      .put("tok_s", std::vector<double>{1.5, 200.25})
      .put("none", std::vector<double>{});
  EXPECT_EQ(row.json(), R"({"part": "decode", "streams": 4, "tok_s": [1.5, 200.25], "none": []})");
  EXPECT_EQ(BenchRow().json(), "{}");
}

TEST(BenchRow, StaysJsonWhateverItIsGiven) {
  BenchRow row;
  row.put("a\"b", "x\\\n\xFF").put("rate", 1 / 0.0).put("no", std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(row.json(), "{\"a\\\"b\": \"x\\\\\\u000a\xEF\xBF\xBD\", \"rate\": null, \"no\": null}");
}

TEST(BenchRow, SpreadHasItsFourFigures) {
  BenchRow row;
  row.put_spread("frozen", {3, 1, 2});
  EXPECT_EQ(row.json(), R"({"frozen_ms": {"n": 3, "p50": 2, "p99": 3, "max": 3}})");
}

TEST(Quantiles, AreValuesThatWereMeasured) {
  EXPECT_EQ(quantiles_of({}).n, 0u);
  EXPECT_EQ(quantiles_of({}).max, 0);
  EXPECT_EQ(quantiles_of({7}).p50, 7);
  EXPECT_EQ(quantiles_of({4, 3, 2, 1}).p50, 2) << "half of them do not exceed it";
  std::vector<double> hundred(100);
  std::iota(hundred.rbegin(), hundred.rend(), 1);
  EXPECT_EQ(quantiles_of(hundred).p50, 50);
  EXPECT_EQ(quantiles_of(hundred).p99, 99);
  EXPECT_EQ(quantiles_of(hundred).max, 100);
  hundred.push_back(101);
  EXPECT_EQ(quantiles_of(hundred).p99, 100);
}

TEST(BenchJson, PutsHeadsBeforeRows) {
  const std::string json =
      bench_json({{"engine", BenchRow().put("a", 1)}, {"machine", BenchRow()}}, {BenchRow().put("b", 2), BenchRow()});
  EXPECT_EQ(json, "{\"engine\": {\"a\": 1},\n \"machine\": {},\n \"rows\": [\n  {\"b\": 2},\n  {}\n]}\n");
  EXPECT_EQ(bench_json({}, {}), "{\"rows\": [\n]}\n");
}

}  // namespace
}  // namespace fermata::cli
