#include <gtest/gtest.h>

#include <cstring>
#include <list>
#include <vector>

#include "base/worker_team.h"
#include "engine/attention/attention_test_case.h"
#include "engine/attention/guarded_rows.h"
#include "engine/attention/node.h"
#include "ggml-cpu.h"

namespace fermata::attention {
namespace {

using Border = GuardedRows::Border;

std::vector<float> computed(TestCase& test, const Kernels& kernels) {
  PositionTable table;
  table.update(test.positions());
  test.clear_output();
  NodeComputer computer(kernels, &table, 2);
  computer.share_tiny_nodes();
  EXPECT_EQ(computer.compute(test.node()), GGML_STATUS_SUCCESS);
  return test.outputs();
}

// Every row of every operand between forbidden pages, and cells that no row sees forbidden as a whole.
std::list<GuardedRows> guard(TestCase& test, Border border) {
  ggml_tensor* node = test.node();
  std::list<GuardedRows> guards;
  for (ggml_tensor* tensor : {node, node->src[0], node->src[3], node->src[1], node->src[2]}) {
    GuardedRows& guarded = guards.emplace_back(tensor, border);
    const bool is_pool = tensor == node->src[1] || tensor == node->src[2];
    for (int cell = 0; is_pool && cell < test.shape().n_cells; ++cell) {
      for (int head = 0; !test.is_seen(cell) && head < test.shape().n_kv_heads; ++head) guarded.forbid(cell, head);
    }
  }
  return guards;
}

// A touch of anything else is a segmentation fault.
TEST(AttentionBounds, OnlyTheOperandsAndCellsThatSomeRowSeesAreTouched) {
  ggml_cpu_init();  // f16 tables
  WorkerTeam::configure({.n_threads = 2});
  ASSERT_FALSE(usable_kernels().empty());
  const auto try_with = [](const TestShape& shape, Border border) {
    TestCase test(shape, 17);
    const auto expected = computed(test, *usable_kernels().front());
    const auto guards = guard(test, border);
    for (const Kernels* kernels : usable_kernels()) {
      const auto got = computed(test, *kernels);
      EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0)
          << kernels->name << " " << ggml_type_name(shape.key_type) << " dims " << shape.key_dims << " rows "
          << shape.n_rows << " cells " << shape.n_cells;
    }
  };
  TestShape shape{.n_kv_heads = 1, .n_seqs = 2, .shuffled = true};
  for (const ggml_type type : {GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_F32}) {
    shape.key_type = shape.value_type = type;
    for (const int dims : {32, 96}) {
      shape.key_dims = shape.value_dims = dims;
      for (const int n_rows : {1, 3, 21}) {    // lone, lone together, as lanes
        for (const int n_cells : {70, 700}) {  // the second is shared out between threads
          shape.n_rows = n_rows;
          shape.n_cells = n_cells;
          shape.window = n_cells * 3 / 7;
          for (const Border border : {Border::kBegin, Border::kEnd}) try_with(shape, border);
        }
      }
    }
  }
}

}  // namespace
}  // namespace fermata::attention
