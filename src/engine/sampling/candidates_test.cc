#include "engine/sampling/candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "engine/sampling/chance.h"
#include "engine/sampling/truncate.h"

namespace fermata {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// Rows with many ties and forbidden tokens: what the lazy list could get wrong.
std::vector<float> awkward_row(std::mt19937& random, std::size_t n) {
  std::vector<float> row(n);
  const bool coarse = random() % 2 == 0;
  std::normal_distribution<float> normal(0, 3);
  for (float& logit : row) {
    logit = normal(random);
    if (coarse) logit = std::round(logit);
    if (random() % 16 == 0) logit = -kInf;
    if (random() % 64 == 0) logit = -0.0f;
  }
  row[random() % n] = 4;
  return row;
}

struct List {
  explicit List(std::vector<float> values) : row(std::move(values)) {
    scan_row(row, scan);
    candidates = std::make_unique<Candidates>(row, scan, scratch);
  }
  std::vector<float> row;
  RowScan scan;
  CandidateScratch scratch;
  std::unique_ptr<Candidates> candidates;
};

std::vector<TokenId> ids(std::span<const Candidate> list) {
  std::vector<TokenId> out;
  for (const Candidate& candidate : list) out.push_back(candidate.id);
  return out;
}

std::vector<TokenId> sorted_ids(const std::vector<float>& row) {
  std::vector<TokenId> all;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i] != -kInf) all.push_back(TokenId{static_cast<std::int32_t>(i)});
  }
  std::stable_sort(all.begin(), all.end(), [&](TokenId a, TokenId b) {
    return row[static_cast<std::size_t>(raw(a))] > row[static_cast<std::size_t>(raw(b))];
  });
  return all;
}

TEST(Candidates, AnyHeadIsThatOfTheFullOrder) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    List list(awkward_row(random, 1 + random() % 3000));
    const auto want = sorted_ids(list.row);
    EXPECT_EQ(list.candidates->size(), want.size());
    for (int look = 0; look < 4; ++look) {
      if (random() % 3 == 0) list.candidates->look_down_to(static_cast<float>(random() % 10) - 5);
      const std::size_t n = 1 + random() % (list.row.size() + 10);
      const auto got = ids(list.candidates->top(n));
      ASSERT_EQ(got.size(), std::min(n, want.size()));
      ASSERT_TRUE(std::equal(got.begin(), got.end(), want.begin()));
    }
  }
}

// p and logits do not depend on whether candidates were found before or after softmax and temperature.
TEST(Candidates, LazinessDoesNotShow) {
  std::mt19937 random(2);
  for (int round = 0; round < 100; ++round) {
    const auto row = awkward_row(random, 500 + random() % 3000);
    List lazy(row), eager(row);
    eager.candidates->top(row.size() / 3);
    for (List* list : {&lazy, &eager}) {
      list->candidates->set_temperature(0.7f);
      list->candidates->softmax();
    }
    lazy.candidates->top(10);
    const auto a = lazy.candidates->all(), b = eager.candidates->all();
    ASSERT_EQ(ids(a), ids(b));
    for (std::size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(a[i].logit, b[i].logit);
      ASSERT_EQ(a[i].p, b[i].p);
    }
    const double u = std::generate_canonical<double, 53>(random);
    List again(row);
    again.candidates->set_temperature(0.7f);
    ASSERT_EQ(choose_dist(*again.candidates, u), choose_dist(*eager.candidates, u));
  }
}

TEST(Truncate, KeepsWhatTheLawsSay) {
  const std::vector<float> row = {std::log(0.1f), std::log(0.4f), std::log(0.2f), std::log(0.25f), std::log(0.05f)};
  const auto kept = [&](const std::function<void(Candidates&)>& law) {
    List list(row);
    law(*list.candidates);
    return ids(list.candidates->all());
  };
  const auto token = [](std::initializer_list<int> numbers) {
    std::vector<TokenId> out;
    for (int number : numbers) out.push_back(TokenId{number});
    return out;
  };
  EXPECT_EQ(kept([](auto& c) { keep_top_k(c, 2); }), token({1, 3}));
  EXPECT_EQ(kept([](auto& c) { keep_top_k(c, 0); }), token({1, 3, 2, 0, 4}));
  EXPECT_EQ(kept([](auto& c) { keep_top_p(c, 0.6f, 0); }), token({1, 3}));
  EXPECT_EQ(kept([](auto& c) { keep_top_p(c, 0.7f, 0); }), token({1, 3, 2}));
  EXPECT_EQ(kept([](auto& c) { keep_top_p(c, 0, 4); }), token({1, 3, 2, 0}));
  EXPECT_EQ(kept([](auto& c) { keep_min_p(c, 0.45f, 0); }), token({1, 3, 2}));
  EXPECT_EQ(kept([](auto& c) { keep_min_p(c, 1, 2); }), token({1, 3}));
  // Expected surprise 1.42 nats; surprises .92 (p .4), 1.39 (.25), 1.61 (.2), 2.3 (.1), 3 (.05).
  EXPECT_EQ(kept([](auto& c) { keep_typical(c, 0.4f, 0); }), token({3, 2}));
  EXPECT_EQ(kept([](auto& c) { keep_typical(c, 0.2f, 0); }), token({3}));
  EXPECT_EQ(kept([](auto& c) { exclude_top_choices(c, 0.5f, 0.19f, 0, 0.4f); }), token({2, 0, 4}));
  EXPECT_EQ(kept([](auto& c) { exclude_top_choices(c, 0.5f, 0.19f, 0, 0.6f); }), token({1, 3, 2, 0, 4}));
  EXPECT_EQ(kept([](auto& c) { exclude_top_choices(c, 0.5f, 0.19f, 4, 0.4f); }), token({1, 3, 2, 0, 4}));
  // Mean of the logits -1.75, deviation .72: within half of it of the best.
  EXPECT_EQ(kept([](auto& c) { keep_top_n_sigma(c, 0.5f); }), token({1}));
  EXPECT_EQ(kept([](auto& c) { keep_top_n_sigma(c, 1); }), token({1, 3, 2}));
}

// Whether top-k, which finds a short list, or a look at the whole row comes first: same laws.
TEST(Truncate, WholeRowAndShortListAgree) {
  std::mt19937 random(4);
  for (int round = 0; round < 200; ++round) {
    const auto row = awkward_row(random, 300 + random() % 2000);
    const float p = 0.05f + 0.9f * std::generate_canonical<float, 24>(random);
    for (int law = 0; law < 3; ++law) {
      List whole(row), listed(row);
      listed.candidates->keep_first(row.size());
      for (List* list : {&whole, &listed}) {
        if (law == 0) keep_top_p(*list->candidates, p, 1);
        if (law == 1) keep_min_p(*list->candidates, p, 1);
        if (law == 2) keep_top_n_sigma(*list->candidates, 2 * p);
      }
      const auto a = ids(whole.candidates->all()), b = ids(listed.candidates->all());
      // Sums in another order may decide otherwise for the last one.
      EXPECT_LE(a.size() > b.size() ? a.size() - b.size() : b.size() - a.size(), 1u) << law;
      EXPECT_TRUE(
          std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(std::min(a.size(), b.size())), b.begin()));
    }
  }
}

TEST(Chance, DistFollowsTheProbabilities) {
  const std::vector<float> row = {1, 2, 0.5f, -kInf, 2};
  List list(row);
  double total = 0;
  for (float logit : row) total += std::exp(static_cast<double>(logit));
  std::map<TokenId, int> counts;
  constexpr int kN = 100'000;
  for (int i = 0; i < kN; ++i) {
    List fresh(row);
    const double u = uniform_double({key_from_seed(1), i, Attempt::kFirst}, Stream::kDist);
    ++counts[choose_dist(*fresh.candidates, u)];
  }
  for (int id = 0; id < 5; ++id) {
    const double p = std::exp(static_cast<double>(row[static_cast<std::size_t>(id)])) / total;
    EXPECT_NEAR(counts[TokenId{id}], p * kN, 5 * std::sqrt(kN * p * (1 - p)) + 1e-9) << id;
  }
}

TEST(Chance, EdgesOfTheUnitIntervalChooseFirstAndLast) {
  List list({1, 3, 2});
  EXPECT_EQ(choose_dist(*list.candidates, 0), TokenId{1});
  EXPECT_EQ(choose_dist(*list.candidates, std::nextafter(1.0, 0.0)), TokenId{0});
}

// mu settles so that the mean surprise is tau.
TEST(Chance, MirostatReachesItsTarget) {
  for (int version : {1, 2}) {
    const MirostatParams params{3.0f, 0.1f, 500};
    SamplerCarry carry = mirostat_start(params);
    std::mt19937 random(9);
    double sum = 0;
    constexpr int kN = 1500, kWarm = 300;
    for (int i = 0; i < kN; ++i) {
      std::vector<float> row(500);
      std::normal_distribution<float> normal(0, 2);
      for (float& logit : row) logit = normal(random);
      List list(row);
      const double u = uniform_double({key_from_seed(5), i, Attempt::kFirst}, Stream::kMirostat);
      const float mu = carry.first;
      const Chosen chosen = version == 1 ? choose_mirostat_v1(*list.candidates, params, carry, u)
                                         : choose_mirostat_v2(*list.candidates, params, carry, u);
      carry = chosen.carry;
      if (i >= kWarm) sum += static_cast<double>(params.tau + (mu - carry.first) / params.eta);
    }
    EXPECT_NEAR(sum / (kN - kWarm), static_cast<double>(params.tau), 0.2) << version;
  }
}

TEST(Chance, MirostatSurvivesOddRowsAndCarries) {
  const MirostatParams params{5, 0.1f, 4};
  for (float mu : {-1e30f, -5.0f, 0.0f, 10.0f, 1e30f}) {
    for (const auto& row : {std::vector<float>{0, 0, 0, 0}, {-kInf, 1, -kInf, -kInf}, {0, -200, -300, -kInf}}) {
      for (int version : {1, 2}) {
        List list(row);
        const Chosen chosen = version == 1 ? choose_mirostat_v1(*list.candidates, params, {mu, 1}, 0.99)
                                           : choose_mirostat_v2(*list.candidates, params, {mu, 1}, 0.99);
        EXPECT_GT(row[static_cast<std::size_t>(raw(chosen.token))], -kInf);
        EXPECT_TRUE(std::isfinite(chosen.carry.first));
      }
    }
  }
}

}  // namespace
}  // namespace fermata
