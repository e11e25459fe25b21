// The whole model with our attention, Q4_0 weights: a row's logits are the same bits in any batch, any chunks and any
// cells. The reference is the same sequence alone, prefilled in one piece and decoded row by row.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "attention/watched_context.h"
#include "base/worker_team.h"
#include "engine/attention/openmp_abi.h"

namespace fermata::attention {
namespace {

constexpr int kPrompt = 530;  // past 512 cells, where ggml's own attention changes its ways
constexpr int kDecoded = 6;
constexpr int kLength = kPrompt + kDecoded;

// Q4_0 weights, made from the shipped file if they are not there.
std::string model_path() {
  const std::string path = FERMATA_TEST_FOLDER "/SmolLM2-135M-Instruct.Q4_0.gguf";
  if (std::filesystem::exists(path)) return path;
  llama_model_quantize_params params = llama_model_quantize_default_params();
  params.ftype = LLAMA_FTYPE_MOSTLY_Q4_0;
  params.allow_requantize = true;
  const std::string part = path + "." + std::to_string(std::random_device{}());
  FERMATA_CHECK_EQ(llama_model_quantize(FERMATA_SHIPPED_MODEL, part.c_str(), &params), 0U);
  std::filesystem::rename(part, path);
  return path;
}

struct KvTypes {
  ggml_type keys;
  ggml_type values;
};

class AttentionModelTest : public testing::TestWithParam<KvTypes> {
 protected:
  static void SetUpTestSuite() {
    llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
    WorkerTeam::configure({.n_threads = 2});
    register_backend();
    llama_backend_init();
    model_ = llama_model_load_from_file(model_path().c_str(), llama_model_default_params());
    ASSERT_NE(model_, nullptr);
  }
  static void TearDownTestSuite() { llama_model_free(model_); }

  void SetUp() override {
    context_ = std::make_unique<WatchedContext>(
        model_, ContextOptions{.key_type = GetParam().keys, .value_type = GetParam().values});
    auto& reference = references_[{GetParam().keys, GetParam().values}];
    if (reference.empty()) {
      prefill(0, 0, kPrompt, 512);
      keep_row(reference, kPrompt - 512 - 1);
      for (int i = kPrompt; i < kLength; ++i) {
        decode({{0, i}});
        keep_row(reference, 0);
      }
      context_->clear();
    }
    reference_ = &reference;
  }

  struct Place {
    llama_seq_id seq;
    llama_pos position;
  };
  // Sequence 0 is the one that is looked at; others have other tokens.
  static llama_token token(llama_seq_id seq, llama_pos position) {
    return 300 + (position * 7919 + seq * 104729) % 40000;
  }
  void decode(std::vector<Place> places) {
    std::vector<BatchRow> rows;
    for (const Place& place : places) rows.push_back({token(place.seq, place.position), place.position, place.seq});
    ASSERT_EQ(context_->decode(rows), 0);
  }
  void prefill(llama_seq_id seq, int begin, int end, int chunk) {
    for (int at = begin; at < end; at += chunk) {
      std::vector<Place> places;
      for (int i = at; i < std::min(end, at + chunk); ++i) places.push_back({seq, i});
      decode(places);
    }
  }
  using Rows = std::vector<std::vector<float>>;
  void keep_row(Rows& rows, int row) {
    const auto logits = context_->logits(row);
    rows.emplace_back(logits.begin(), logits.end());
  }
  // Row 0 of the reference is the prompt's last row, then the decoded ones.
  void expect_row(int nth, int row, const char* what) {
    const auto logits = context_->logits(row);
    float largest = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      largest = std::max(largest, std::abs(logits[i] - (*reference_)[nth][i]));
    }
    EXPECT_EQ(std::memcmp(logits.data(), (*reference_)[nth].data(), logits.size() * sizeof(float)), 0)
        << what << ", row " << nth << ": max|d| " << largest;
  }
  // Decodes sequence 0's rows with as many neighbours and compares.
  void expect_decoding(int n_neighbours, const char* what) {
    for (int i = kPrompt; i < kLength; ++i) {
      std::vector<Place> places;
      for (int n = 0; n < n_neighbours; ++n) places.push_back({n + 1, next_of_neighbour_[n]++});
      const int at = n_neighbours / 2;  // in the middle of the batch
      places.insert(places.begin() + at, {0, i});
      decode(places);
      expect_row(1 + i - kPrompt, at, what);
    }
  }

  static llama_model* model_;
  std::unique_ptr<WatchedContext> context_;
  static std::map<std::pair<ggml_type, ggml_type>, Rows> references_;  // by KV types; one run serves all tests
  const Rows* reference_ = nullptr;
  std::vector<llama_pos> next_of_neighbour_ = std::vector<llama_pos>(8, 0);
};
llama_model* AttentionModelTest::model_ = nullptr;
std::map<std::pair<ggml_type, ggml_type>, AttentionModelTest::Rows> AttentionModelTest::references_;

TEST_P(AttentionModelTest, AnyBatchAndAnyChunks) {
  const auto nodes_before = nodes_computed();
  const auto regions_before = openmp_regions();
  for (const int chunk : {64, 16, 7}) {
    context_->clear();
    prefill(0, 0, kPrompt, chunk);
    expect_row(0, (kPrompt - 1) % chunk, "chunks");
    for (auto& next : next_of_neighbour_) next = 0;
    if (chunk == 64) expect_decoding(1, "batch of 2");
    if (chunk == 16) expect_decoding(3, "batch of 4");
    if (chunk == 7) expect_decoding(7, "batch of 8");
  }
  EXPECT_GT(nodes_computed(), nodes_before) << "this was not our attention";
  EXPECT_GT(openmp_regions(), regions_before) << "ggml did not run on our team";
}

TEST_P(AttentionModelTest, RowsOneByOneAtTheEndOfThePrompt) {
  prefill(0, 0, kPrompt - 20, 512);
  prefill(0, kPrompt - 20, kPrompt, 1);
  expect_row(0, 0, "one by one");
  expect_decoding(0, "alone");
}

TEST_P(AttentionModelTest, AHoleFilledInPrefillAndInDecode) {
  prefill(1, 0, 200, 512);
  prefill(2, 0, 40, 512);
  context_->remove(1);
  prefill(0, 0, kPrompt, 256);  // the first 200 cells, then those after the neighbour
  expect_row(0, (kPrompt - 1) % 256, "hole filled in prefill");
  context_->remove(2);  // and its 40 cells are filled while decoding
  expect_decoding(0, "decoding into a hole");
  EXPECT_LT(context_->last_cell(), 260) << "the hole was not used: this test tests nothing";
}

TEST_P(AttentionModelTest, InterleavedWithANeighbour) {
  for (int at = 0; at < kPrompt; at += 53) {
    prefill(0, at, std::min(kPrompt, at + 53), 53);
    if (at + 53 >= kPrompt) expect_row(0, 52, "interleaved prefill");
    prefill(1, next_of_neighbour_[0], next_of_neighbour_[0] + 26, 26);
    next_of_neighbour_[0] += 26;
  }
  expect_decoding(1, "interleaved");
}

// A prefill chunk of one sequence and a decode row of another in one ubatch.
TEST_P(AttentionModelTest, PrefillAndDecodeInOneUbatch) {
  prefill(0, 0, kPrompt, 512);
  for (int i = kPrompt; i < kLength; ++i) {
    std::vector<Place> places;
    const int begin = (i - kPrompt) * 30;
    for (int n = begin; n < begin + 30; ++n) places.push_back({1, n});
    places.push_back({0, i});
    decode(places);
    expect_row(1 + i - kPrompt, 30, "beside a prefill chunk");
  }
}

// libllama's own abort callback reaches the attention; the pool then serves the next decode as if nothing had been.
TEST_P(AttentionModelTest, AnAbortedDecodeLeavesNoTrace) {
  prefill(0, 0, kPrompt, 512);
  static std::atomic<int> n_asked;
  n_asked = 0;
  llama_set_abort_callback(
      context_->raw(), [](void*) { return ++n_asked > 60; }, nullptr);
  std::vector<BatchRow> rows;
  for (int i = 0; i < 64; ++i) rows.push_back({token(1, i), i, 1});
  EXPECT_EQ(context_->decode(rows), 2);
  llama_set_abort_callback(context_->raw(), nullptr, nullptr);
  context_->remove(1);
  expect_decoding(0, "after an abort");
}

INSTANTIATE_TEST_SUITE_P(KvTypes, AttentionModelTest,
                         testing::Values(KvTypes{GGML_TYPE_F16, GGML_TYPE_F16}, KvTypes{GGML_TYPE_BF16, GGML_TYPE_BF16},
                                         KvTypes{GGML_TYPE_Q8_0, GGML_TYPE_Q8_0},
                                         KvTypes{GGML_TYPE_Q8_0, GGML_TYPE_BF16}),
                         [](const auto& one) {
                           return std::string(ggml_type_name(one.param.keys)) + "_" + ggml_type_name(one.param.values);
                         });

}  // namespace
}  // namespace fermata::attention
