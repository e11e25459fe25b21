#include "engine/attention/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <sstream>
#include <thread>
#include <vector>

#include "base/worker_team.h"
#include "engine/attention/attention_test_case.h"
#include "engine/attention/node.h"
#include "engine/attention/openmp_abi.h"
#include "engine/attention/scalar_twin.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"

namespace fermata::attention {
namespace {

// What a row's output must be: from the scalar twin, over its own cells only.
std::vector<float> plain_output(TestCase& test, int row, int head) {
  const ggml_tensor* node = test.node();
  const auto rows_of = [](const ggml_tensor* tensor) {
    KvType type = KvType::kF32;
    if (tensor->type == GGML_TYPE_F16) type = KvType::kF16;
    if (tensor->type == GGML_TYPE_BF16) type = KvType::kBf16;
    if (tensor->type == GGML_TYPE_Q8_0) type = KvType::kQ8_0;
    return KvRows{static_cast<const std::byte*>(tensor->data), tensor->nb[1], tensor->nb[2], type,
                  static_cast<int>(tensor->ne[0])};
  };
  std::vector<float> out(test.shape().value_dims, 0.0F);
  Operands operands{.keys = rows_of(node->src[1]), .values = rows_of(node->src[2]), .out = out.data()};
  std::memcpy(&operands.scale, node->op_params, sizeof(float));
  operands.query = reinterpret_cast<const float*>(static_cast<const std::byte*>(node->src[0]->data) +
                                                  row * node->src[0]->nb[1] + head * node->src[0]->nb[2]);
  const auto cells = test.own_cells(row);
  if (cells.empty()) return out;
  const Interval own{0, static_cast<int>(cells.size())};
  attend_plainly({.operands = &operands,
                  .cells = cells.data(),
                  .n_cells = own.end,
                  .own = &own,
                  .n_rows = 1,
                  .kv_head = head / test.shape().group,
                  .n_heads = 1});
  return out;
}

std::string describe(const TestShape& s) {
  std::ostringstream out;
  out << "dims " << s.key_dims << "/" << s.value_dims << " kv_heads " << s.n_kv_heads << " group " << s.group
      << " rows " << s.n_rows << " cells " << s.n_cells << " seqs " << s.n_seqs << " window " << s.window
      << " shuffled " << s.shuffled << " random " << s.random_mask << " types " << ggml_type_name(s.key_type) << "/"
      << ggml_type_name(s.value_type);
  return out.str();
}

// Equal bits, or NaN in both: which NaN depends on the instruction set.
bool same(float a, float b) { return std::memcmp(&a, &b, sizeof(float)) == 0 || (std::isnan(a) && std::isnan(b)); }

// Checks some rows of a computed node against the twin.
void expect_plain(TestCase& test, int n_rows_checked) {
  const TestShape& shape = test.shape();
  for (int i = 0; i < n_rows_checked; ++i) {
    const int row = n_rows_checked >= shape.n_rows ? i : test.uniform(0, shape.n_rows - 1);
    if (row >= shape.n_rows) break;
    for (int head = 0; head < test.n_heads(); ++head) {
      const auto expected = plain_output(test, row, head);
      const float* got = test.output(row, head);
      for (int dim = 0; dim < shape.value_dims; ++dim) {
        ASSERT_TRUE(same(got[dim], expected[dim])) << describe(shape) << ": row " << row << " head " << head << " dim "
                                                   << dim << ": " << got[dim] << " instead of " << expected[dim];
      }
    }
  }
}

TestShape random_shape(std::mt19937_64& random, bool large) {
  const auto pick = [&](auto... options) {
    const std::array values{options...};
    return values[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random)];
  };
  const auto below = [&](int n) { return std::uniform_int_distribution<int>(1, n)(random); };
  TestShape shape;
  shape.key_dims = pick(32, 64, 80, 96, 128);
  shape.value_dims = below(4) == 1 ? pick(32, 64, 96) : shape.key_dims;
  shape.n_kv_heads = below(3);
  shape.group = below(8);
  shape.n_rows = pick(1, 1, 2, 4, 5, 8, 17, 33, large ? 200 : 40);
  shape.n_cells = pick(1, 3, 64, 65, 200, 300, large ? 2000 : 400);
  shape.n_seqs = pick(1, 1, 2, 4);
  shape.window = pick(0, 0, 0, 7, 100);
  shape.shuffled = below(2) == 1;
  shape.random_mask = below(8) == 1;
  const auto type = [&](int dims) {
    return dims % 32 == 0 ? pick(GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_F32)
                          : pick(GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_F32);
  };
  shape.key_type = type(shape.key_dims);
  shape.value_type = type(shape.value_dims);
  return shape;
}

class AttentionTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ggml_cpu_init();  // f16 tables
    WorkerTeam::configure({.n_threads = 4});
  }
  void SetUp() override {
    if (!available()) GTEST_FAIL() << "this CPU has none of AVX2, AVX-512, NEON";
  }
};

TEST_F(AttentionTest, TheTwinsExpIsAnExp) {
  for (float x = 0.0F; x > -86.0F; x -= 0.0371F) {
    const double exact = std::exp(static_cast<double>(x));
    EXPECT_NEAR(exp_plainly(x) / exact, 1.0, 2e-7) << x;
  }
  EXPECT_EQ(exp_plainly(0.0F), 1.0F);
  EXPECT_EQ(exp_plainly(-86.1F), 0.0F);
  EXPECT_EQ(exp_plainly(-std::numeric_limits<float>::infinity()), 0.0F);
}

TEST_F(AttentionTest, EveryInstructionSetGivesTheTwinsBitsForAnyShape) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 150; ++i) {
    TestCase test(random_shape(random, i % 10 == 0), random());
    PositionTable table;
    table.update(test.positions());
    for (const Kernels* kernels : usable_kernels()) {
      SCOPED_TRACE(std::string(kernels->name) + " case " + std::to_string(i));
      test.clear_output();
      ASSERT_TRUE(supports(test.node())) << describe(test.shape());
      NodeComputer computer(*kernels, &table, 1 + i % 4);
      computer.share_tiny_nodes();
      ASSERT_EQ(computer.compute(test.node()), GGML_STATUS_SUCCESS);
      expect_plain(test, 4);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(AttentionTest, ThreadsAndInstructionSetsDoNotChangeAnyBit) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 60; ++i) {
    TestCase test(random_shape(random, true), random());
    PositionTable table;
    table.update(test.positions());
    std::vector<float> first;
    for (const Kernels* kernels : usable_kernels()) {
      for (int n_threads = 1; n_threads <= 4; ++n_threads) {
        test.clear_output();
        NodeComputer computer(*kernels, &table, n_threads);
        computer.share_tiny_nodes();
        ASSERT_EQ(computer.compute(test.node()), GGML_STATUS_SUCCESS);
        const auto outputs = test.outputs();
        if (first.empty()) first = outputs;
        ASSERT_TRUE(std::equal(first.begin(), first.end(), outputs.begin(), same))
            << describe(test.shape()) << " " << kernels->name << " threads " << n_threads;
      }
    }
  }
}

// Written down, because no machine has all instruction sets: NEON's are those of AVX2 and AVX-512 (tools/cross-arm64).
TEST_F(AttentionTest, TheBitsAreTheSameOnEveryKindOfCpu) {
  constexpr std::uint64_t kBits = 0xB4764BE98891FA7B;
  for (const Kernels* kernels : usable_kernels()) {
    std::mt19937_64 random(13);
    std::uint64_t hash = 0xCBF29CE484222325;  // FNV-1a
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      TestCase test(random_shape(random, false), seed);
      PositionTable table;
      table.update(test.positions());
      NodeComputer computer(*kernels, &table, 2);
      computer.share_tiny_nodes();
      ASSERT_EQ(computer.compute(test.node()), GGML_STATUS_SUCCESS);
      for (const float number : test.outputs()) {
        ASSERT_FALSE(std::isnan(number)) << describe(test.shape());
        hash = (hash ^ std::bit_cast<std::uint32_t>(number)) * 0x100000001B3;
      }
    }
    EXPECT_EQ(hash, kBits) << kernels->name;
  }
}

// |error| <= 1e-5 of the largest value, for up to 2,000 cells of unit spread.
TEST_F(AttentionTest, IsCloseToDoublePrecision) {
  for (const int n_cells : {1, 10, 300, 2000}) {
    TestCase test({.key_dims = 128,
                   .value_dims = 128,
                   .group = 4,
                   .n_rows = 12,
                   .n_cells = n_cells,
                   .key_type = GGML_TYPE_F32,
                   .value_type = GGML_TYPE_F32},
                  n_cells);
    NodeComputer computer(*usable_kernels().front(), nullptr, 2);
    ASSERT_EQ(computer.compute(test.node()), GGML_STATUS_SUCCESS);
    const ggml_tensor* node = test.node();
    const auto number = [](const ggml_tensor* t, int dim, int at, int head) {
      const auto* row = static_cast<const std::byte*>(t->data) + at * t->nb[1] + head * t->nb[2];
      return static_cast<double>(reinterpret_cast<const float*>(row)[dim]);
    };
    float scale = 0;
    std::memcpy(&scale, node->op_params, sizeof(float));
    double worst = 0;
    for (int row = 0; row < 12; ++row) {
      const auto cells = test.own_cells(row);
      if (cells.empty()) continue;
      for (int head = 0; head < test.n_heads(); ++head) {
        std::vector<double> sums(128, 0.0);
        double total = 0;
        for (const std::uint32_t cell : cells) {
          double score = 0;
          for (int dim = 0; dim < 128; ++dim) {
            score += number(node->src[0], dim, row, head) * scale * number(node->src[1], dim, cell, head / 4);
          }
          const double weight = std::exp(score);
          total += weight;
          for (int dim = 0; dim < 128; ++dim) sums[dim] += weight * number(node->src[2], dim, cell, head / 4);
        }
        for (int dim = 0; dim < 128; ++dim) {
          worst = std::max(worst, std::abs(sums[dim] / total - static_cast<double>(test.output(row, head)[dim])));
        }
      }
    }
    EXPECT_LT(worst, 1e-5 * 3.5) << n_cells;  // values reach 3.5
  }
}

// NaN in cells that only some rows see must not touch the others: not even times a weight of 0.
TEST_F(AttentionTest, ACellTouchesOnlyTheRowsThatSeeIt) {
  std::mt19937_64 random(5);
  const auto try_with = [&](int window, ggml_type type) {
    TestCase test(
        {.n_rows = 40, .n_cells = 150, .window = window, .shuffled = true, .key_type = type, .value_type = type},
        random());
    int last = 0;  // the last position's cell is seen by the last row alone
    for (int cell = 0; cell < 150; ++cell) last = test.positions()[cell] == 149 ? cell : last;
    int early = 0;  // with a window, seen by the first rows alone
    for (int cell = 0; cell < 150; ++cell) early = test.positions()[cell] == 105 ? cell : early;
    test.poison(last);
    if (window != 0) test.poison(early);
    PositionTable table;
    table.update(test.positions());
    for (const Kernels* kernels : usable_kernels()) {
      test.clear_output();
      NodeComputer computer(*kernels, &table, 2);
      computer.share_tiny_nodes();
      ASSERT_EQ(computer.compute(test.node()), GGML_STATUS_SUCCESS);
      EXPECT_TRUE(std::isnan(test.output(39, 0)[0]));
      EXPECT_FALSE(std::isnan(test.output(38, 0)[0]));
      expect_plain(test, 40);
    }
  };
  for (const ggml_type type : {GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_F32}) {
    for (const int window : {0, 9}) try_with(window, type);
  }
}

TEST_F(AttentionTest, ARowThatSeesNothingGivesZeros) {
  TestCase test({.n_rows = 6, .n_cells = 3, .n_seqs = 4}, 3);  // some sequences have no cells
  PositionTable table;
  table.update(test.positions());
  NodeComputer computer(*usable_kernels().front(), &table, 1);
  test.clear_output();
  ASSERT_EQ(computer.compute(test.node()), GGML_STATUS_SUCCESS);
  expect_plain(test, 6);
}

TEST_F(AttentionTest, ListsFollowTheTablesEpoch) {
  TestCase before({.n_rows = 9, .n_cells = 90, .shuffled = true}, 1);
  PositionTable table;
  table.update(before.positions());
  NodeComputer computer(*usable_kernels().front(), &table, 2);
  for (int layer = 0; layer < 2; ++layer) {
    before.clear_output();
    ASSERT_EQ(computer.compute(before.node()), GGML_STATUS_SUCCESS);
    expect_plain(before, 9);
  }
  // Same tensors, other mask: a new ubatch.
  auto* mask = static_cast<ggml_fp16_t*>(before.node()->src[3]->data);
  const auto first_rows = before.outputs();
  std::fill_n(mask, 90, ggml_fp32_to_fp16(-std::numeric_limits<float>::infinity()));
  table.update(before.positions());
  ASSERT_EQ(computer.compute(before.node()), GGML_STATUS_SUCCESS);
  EXPECT_EQ(before.output(0, 0)[0], 0.0F);
  EXPECT_NE(first_rows[0], 0.0F);
}

TEST_F(AttentionTest, TwoTablesKeepTwoContextsApart) {
  TestCase a({.n_rows = 3, .n_cells = 70, .shuffled = true}, 21);
  TestCase b({.n_rows = 3, .n_cells = 70, .shuffled = true}, 22);
  PositionTable table_a;
  PositionTable table_b;
  table_a.update(a.positions());
  table_b.update(b.positions());
  NodeComputer computer_a(*usable_kernels().front(), &table_a, 2);
  NodeComputer computer_b(*usable_kernels().front(), &table_b, 2);
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(computer_a.compute(a.node()), GGML_STATUS_SUCCESS);
    ASSERT_EQ(computer_b.compute(b.node()), GGML_STATUS_SUCCESS);
    expect_plain(a, 3);
    expect_plain(b, 3);
  }
}

TEST_F(AttentionTest, AMaskWithOtherNumbersIsRefused) {
  TestCase test({.n_rows = 2, .n_cells = 40}, 2);
  static_cast<ggml_fp16_t*>(test.node()->src[3]->data)[0] = ggml_fp32_to_fp16(-1.5F);
  NodeComputer computer(*usable_kernels().front(), nullptr, 1);
  EXPECT_EQ(computer.compute(test.node()), GGML_STATUS_FAILED);
}

TEST_F(AttentionTest, AnAbortEndsTheNodeBetweenTasks) {
  struct Asked {
    std::atomic<int> times{0};
    int allowed = 0;
  };
  for (const int n_rows : {1, 200}) {
    TestCase test({.n_rows = n_rows, .n_cells = 1500}, 4);
    Asked asked;
    NodeComputer computer(*usable_kernels().front(), nullptr, 2);
    computer.set_abort(
        [](void* data) {
          auto* counter = static_cast<Asked*>(data);
          return counter->times.fetch_add(1) >= counter->allowed;
        },
        &asked);
    asked.allowed = 1 << 30;
    ASSERT_EQ(computer.compute(test.node()), GGML_STATUS_SUCCESS);
    const int n_tasks = asked.times.load();
    EXPECT_GE(n_tasks, 4);
    for (const int allowed : {0, 1, n_tasks / 2, n_tasks - 1}) {
      asked.times = 0;
      asked.allowed = allowed;
      EXPECT_EQ(computer.compute(test.node()), GGML_STATUS_ABORTED);
      EXPECT_LE(asked.times.load(), allowed + 2);  // each thread may have asked once more
    }
    asked.times = 0;
    asked.allowed = 1 << 30;
    test.clear_output();
    ASSERT_EQ(computer.compute(test.node()), GGML_STATUS_SUCCESS);
    expect_plain(test, 2);
  }
}

// Kernels that find no memory at one of their calls, on whichever thread that is; or at a worker's first, before which
// the caller's do not end.
struct Failing {
  static inline const Kernels* real = nullptr;
  static inline std::atomic<int> n_calls{0};
  static inline int fails_at = -1;
  static inline bool fails_on_worker = false;
  static inline std::atomic<bool> failed_on_worker{false};

  static void call() {
    const bool is_worker = WorkerTeam::member() != 0;
    if (fails_on_worker && !is_worker) failed_on_worker.wait(false);
    if (n_calls.fetch_add(1) != fails_at && !(fails_on_worker && is_worker)) return;
    if (is_worker) failed_on_worker = true;
    failed_on_worker.notify_all();
    throw std::bad_alloc();
  }
  static Kernels kernels() {
    Kernels made = *real;
    made.attend_block = [](const Block& block) {
      call();
      real->attend_block(block);
    };
    made.score_row = [](const Block& block, int begin, int end, float* scores) {
      call();
      real->score_row(block, begin, end, scores);
    };
    made.weigh_row = [](const Block& block, const float* scores, int begin, int end) {
      call();
      real->weigh_row(block, scores, begin, end);
    };
    return made;
  }
};

TEST_F(AttentionTest, WantOfMemoryOnAnyThreadIsAnErrorOfTheNode) {
  Failing::real = usable_kernels().front();
  const Kernels kernels = Failing::kernels();
  for (const int n_rows : {1, 200}) {
    TestCase test({.n_rows = n_rows, .n_cells = 1500}, 4);
    NodeComputer computer(kernels, nullptr, 2);
    computer.share_tiny_nodes();
    Failing::fails_at = -1;
    Failing::n_calls = 0;
    ASSERT_EQ(computer.compute(test.node()), GGML_STATUS_SUCCESS);
    const int n_calls = Failing::n_calls;
    for (int at = 0; at < n_calls; at += 1 + n_calls / 20) {
      Failing::fails_at = at;
      Failing::n_calls = 0;
      EXPECT_EQ(computer.compute(test.node()), GGML_STATUS_ALLOC_FAILED) << at << " of " << n_calls;
    }
    Failing::fails_at = -1;
    Failing::failed_on_worker = false;
    Failing::fails_on_worker = true;
    EXPECT_EQ(computer.compute(test.node()), GGML_STATUS_ALLOC_FAILED);
    EXPECT_TRUE(Failing::failed_on_worker);
    Failing::fails_on_worker = false;
    test.clear_output();
    ASSERT_EQ(computer.compute(test.node()), GGML_STATUS_SUCCESS) << "and it goes on";
    expect_plain(test, 2);
  }
}

TEST_F(AttentionTest, AScratchThatCannotGrowIsEmptyAndCanBeTriedAgain) {
  ScratchArray scratch;
  ASSERT_NE(scratch.at_least(100), nullptr);
  EXPECT_THROW(scratch.at_least(std::size_t{1} << 60), std::bad_alloc);
  float* const again = scratch.at_least(100);
  ASSERT_NE(again, nullptr);
  again[99] = 1;
}

// A lone row's scores are shared out, then its sums: no sum may begin while a score is missing. The first piece is held
// back (in the abort query, which is asked before each piece) until all others are taken; a sum that began by then, or
// soon after, would be asked about too.
TEST_F(AttentionTest, NoSumBeginsBeforeTheLastScore) {
  struct Held {
    std::atomic<std::size_t> n_asked{0};
    std::size_t n_scores = 0;
    std::atomic<bool> too_early{false};
  };
  TestCase test({.n_kv_heads = 3, .n_rows = 1, .n_cells = 8000}, 8);
  const Kernels& kernels = *usable_kernels().front();
  CellLists lists;
  const ggml_tensor* mask = test.node()->src[3];
  ASSERT_TRUE(lists.build(kernels, {static_cast<const std::uint16_t*>(mask->data), 8000, 1, 8000}, {}));
  const Operands operands{
      .keys = {.dims = 64}, .values = {.dims = 64}, .n_rows = 1, .n_heads = 9, .n_kv_heads = 3, .scale = 1.0F};
  Schedule schedule;
  schedule.cut(kernels, operands, lists, 2);
  ASSERT_TRUE(schedule.is_split());
  ASSERT_FALSE(schedule.is_tiny(true)) << "it would run alone, and wait for ever";

  Held held;
  held.n_scores = schedule.score_parts().size();
  NodeComputer computer(kernels, nullptr, 2);
  computer.set_abort(
      [](void* data) {
        auto& self = *static_cast<Held*>(data);
        if (self.n_asked.fetch_add(1) != 0) return false;
        while (self.n_asked.load() < self.n_scores) std::this_thread::yield();
        for (int i = 0; i < 5000; ++i) std::this_thread::yield();
        self.too_early = self.n_asked.load() > self.n_scores;
        return false;
      },
      &held);
  ASSERT_EQ(computer.compute(test.node()), GGML_STATUS_SUCCESS);
  EXPECT_FALSE(held.too_early.load());
  expect_plain(test, 1);
}

TEST_F(AttentionTest, VariantsItDoesNotKnowAreRefused) {
  const auto shape = [](auto change) {
    TestShape s{.n_rows = 2};
    change(s);
    return s;
  };
  const auto refused_with = [&](auto change) {
    TestCase test(shape([](TestShape&) {}), 1);
    EXPECT_TRUE(supports(test.node()));
    change(test.node());
    return !supports(test.node());
  };
  const auto set_parameter = [](ggml_tensor* node, int index) {
    const float value = 8.0F;
    std::memcpy(node->op_params + index, &value, sizeof(float));
  };
  EXPECT_TRUE(refused_with([&](ggml_tensor* node) { set_parameter(node, 1); })) << "ALiBi";
  EXPECT_TRUE(refused_with([&](ggml_tensor* node) { set_parameter(node, 2); })) << "soft cap";
  EXPECT_TRUE(refused_with([](ggml_tensor* node) { node->src[3] = nullptr; })) << "no mask";
  EXPECT_TRUE(refused_with([](ggml_tensor* node) { node->src[4] = node->src[0]; })) << "sinks";
  EXPECT_TRUE(refused_with([](ggml_tensor* node) { node->src[0]->ne[3] = 2; })) << "streams";
  EXPECT_TRUE(refused_with([](ggml_tensor* node) { node->src[3]->ne[2] = 2; })) << "a mask per head";
  EXPECT_TRUE(refused_with([](ggml_tensor* node) { node->src[1]->type = GGML_TYPE_Q4_0; })) << "type";
  EXPECT_TRUE(refused_with([](ggml_tensor* node) { node->src[2]->ne[0] = 72; })) << "head size";
  EXPECT_TRUE(refused_with([](ggml_tensor* node) { node->src[2]->nb[0] = 128; })) << "transposed values";
}

// The road that libllama takes: registry, device, backend, graph; and ggml's own attention agrees with ours.
TEST_F(AttentionTest, WorksAsAGgmlBackendAndAgreesWithGgml) {
  register_backend();
  register_backend();
  ggml_backend_dev_t device = ggml_backend_dev_by_name("FERMATA");
  ASSERT_NE(device, nullptr);
  EXPECT_EQ(ggml_backend_dev_type(device), GGML_BACKEND_DEVICE_TYPE_ACCEL);
  TestCase test({.n_rows = 20, .n_cells = 333}, 9);
  PositionTable table;
  table.update(test.positions());
  ggml_backend_t backend = nullptr;
  {
    BindScope bind(&table);
    backend = ggml_backend_dev_init(device, nullptr);
  }
  EXPECT_TRUE(ggml_backend_supports_op(backend, test.node()));
  ggml_context* context = ggml_init({.mem_size = 1 << 20, .mem_buffer = nullptr, .no_alloc = true});
  ggml_cgraph* graph = ggml_new_graph(context);
  ggml_build_forward_expand(graph, test.node());
  const auto before = nodes_computed();
  test.clear_output();
  ASSERT_EQ(ggml_backend_graph_compute(backend, graph), GGML_STATUS_SUCCESS);
  EXPECT_EQ(nodes_computed(), before + 1);
  expect_plain(test, 20);

  const auto ours = test.outputs();
  const auto regions = openmp_regions();
  ggml_backend_t cpu = ggml_backend_cpu_init();
  ggml_backend_cpu_set_n_threads(cpu, 4);
  for (int cell = 0; cell < 333; ++cell) ASSERT_TRUE(test.sees(19, cell));  // nothing poisoned
  ASSERT_EQ(ggml_backend_graph_compute(cpu, graph), GGML_STATUS_SUCCESS);
  EXPECT_GT(openmp_regions(), regions) << "ggml's parallel regions do not run on our team";
  const auto theirs = test.outputs();
  for (std::size_t i = 0; i < ours.size(); ++i) EXPECT_NEAR(ours[i], theirs[i], 2e-2);
  ggml_free(context);
  ggml_backend_free(cpu);
  ggml_backend_free(backend);
}

}  // namespace
}  // namespace fermata::attention
