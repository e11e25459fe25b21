#include "engine/llama/memory.h"

#include <gtest/gtest.h>

#include "engine/llama/gguf_fixture.h"

namespace fermata {
namespace {

class MemoryTest : public testing::Test {
 protected:
  // 2 layers, 2 heads of 4 values each: 16 values in a row of keys, as many of values.
  GgufFile file() {
    test::write_file(folder_.file("small.gguf"), test::SmallGguf{}.bytes());
    auto read = GgufFile::read(folder_.file("small.gguf"));
    EXPECT_TRUE(read);
    return *std::move(read);
  }
  test::TempFolder folder_;
  LlamaOptions options_;
};

TEST_F(MemoryTest, CountsThePoolAsLibllamaRoundsIt) {
  options_.n_cells = 256;
  const std::uint64_t f16 = 256 * 2 * (8 + 8) * 2;  // cells, layers, values of keys and values, bytes
  EXPECT_EQ(pool_bytes_wanted(file(), options_), f16);
  options_.n_cells = 257;
  EXPECT_EQ(pool_bytes_wanted(file(), options_), 2 * f16);
  options_.n_cells = 256;
  options_.v_type = KvType::kQ8_0;  // 8 values fill a part of one block of 34 bytes
  EXPECT_EQ(pool_bytes_wanted(file(), options_), std::uint64_t{256 * 2 * (8 * 2 + 34)});
}

TEST_F(MemoryTest, RefusesAPoolThatCannotBeHadAndSaysWhatToLower) {
  options_.n_cells = 1024;
  const std::uint64_t wanted = *pool_bytes_wanted(file(), options_);
  EXPECT_TRUE(check_pool_fits(file(), options_, {wanted, wanted}));
  EXPECT_TRUE(check_pool_fits(file(), options_, {0, 0})) << "nothing is known: libllama will tell";
  const auto refused = check_pool_fits(file(), options_, {wanted, wanted - 1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kTooLarge);
  for (const char* word : {"1024 cells", "1 MiB", "-c", "--kv q8_0"})
    EXPECT_NE(refused.error().message.find(word), std::string::npos) << refused.error().message;
  options_.k_type = options_.v_type = KvType::kQ8_0;
  EXPECT_EQ(too_little_memory_for_pool({}, 0, options_).message.find("--kv"), std::string::npos);
}

TEST_F(MemoryTest, AStepGrowsWithTheVocabularyAndThePool) {
  const std::uint64_t small = step_bytes_wanted(file(), options_, 100);
  EXPECT_GE(step_bytes_wanted(file(), options_, 1100) - small, 4u * 1000 * limits::kSequencesMax);
  options_.n_cells *= 2;
  EXPECT_GT(step_bytes_wanted(file(), options_, 100), small);
}

TEST_F(MemoryTest, FindsOutWhetherThereIsRoom) {
  EXPECT_TRUE(has_room_for(1 << 20));
  EXPECT_FALSE(has_room_for(std::uint64_t{1} << 62));
}

TEST_F(MemoryTest, KnowsThisMachine) {
  const MemoryBudget budget = read_memory_budget();
  EXPECT_GT(budget.n_bytes, 0u);
  EXPECT_GT(budget.n_bytes_available, 0u);
}

TEST_F(MemoryTest, TellsWantOfMemoryFromOtherErrors) {
  EXPECT_TRUE(tells_of_memory("x: failed to allocate buffer of size 1; failed to allocate buffer for kv cache"));
  EXPECT_TRUE(tells_of_memory("ggml_aligned_malloc: insufficient memory (attempted to allocate  41.96 MB)"));
  EXPECT_TRUE(tells_of_memory("std::bad_alloc"));
  EXPECT_FALSE(tells_of_memory("K cache type q8_0 with block size 32 does not divide n_embd_head_k=80"));
}

}  // namespace
}  // namespace fermata
