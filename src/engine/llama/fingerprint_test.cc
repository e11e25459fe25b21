#include "engine/llama/fingerprint.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "engine/llama/gguf_fixture.h"

namespace fermata {
namespace {

using test::SmallGguf;
using test::TempFolder;
using test::write_file;

class FingerprintTest : public testing::Test {
 protected:
  FingerprintTest() { setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1); }

  Fingerprint of(const SmallGguf& small, const std::string& name = "model.gguf") {
    write_file(folder_.file(name), small.bytes());
    files_ = {*GgufFile::read(folder_.file(name))};
    input_.files = &files_;
    auto made = make_fingerprint(input_);
    EXPECT_TRUE(made);
    return *made;
  }

  TempFolder folder_;
  std::vector<GgufFile> files_;
  FingerprintInput input_{nullptr, {}, KvType::kF16, KvType::kF16, "fermata 1 AVX2"};
};

TEST_F(FingerprintTest, IgnoresWhatDecidesNoBit) {
  const Fingerprint first = of({});
  EXPECT_EQ(first.hex.size(), 64u);
  EXPECT_EQ(of({}, "another-name.gguf").hex, first.hex);
  SmallGguf small;
  small.license = "mit";
  small.chat_template = "{{ other }}";
  EXPECT_EQ(of(small).hex, first.hex);
  EXPECT_EQ(of(small).first_difference(first), "");
}

TEST_F(FingerprintTest, NamesTheFieldThatDiffers) {
  const Fingerprint first = of({});
  auto differs = [&](const Fingerprint& other) {
    EXPECT_NE(other.hex, first.hex);
    return first.first_difference(other);
  };
  SmallGguf small;
  small.rope_base = 20000;
  EXPECT_EQ(differs(of(small)), "model.rope");
  small = {};
  small.third_token = "d";
  EXPECT_EQ(differs(of(small)), "model.tokenizer");
  small = {};
  small.n_heads = 2;
  EXPECT_EQ(differs(of(small)), "model.shape");
  small = {};
  small.weight = 2;
  EXPECT_EQ(differs(of(small)), "model.weights");

  input_.k_type = KvType::kQ8_0;
  EXPECT_EQ(differs(of({})), "kv.keys");
  input_.k_type = KvType::kF16;
  input_.v_type = KvType::kBf16;
  EXPECT_EQ(differs(of({})), "kv.values");
  input_.v_type = KvType::kF16;
  input_.attention = "ggml";
  EXPECT_EQ(differs(of({})), "attention");
  input_.attention = "fermata 1 AVX2";
  input_.switches.tiled_products = false;
  EXPECT_EQ(differs(of({})), "kernels.tiled_products");
  input_.switches = {};
  input_.switches.repacked_weights = false;
  EXPECT_EQ(differs(of({})), "kernels.repacked_weights");
  input_.switches = {};
  input_.switches.reordered_blocks = false;
  EXPECT_EQ(differs(of({})), "kernels.reordered_blocks");
}

// The digest of the weights is remembered by the file's identity; a file rewritten in place is another.
TEST_F(FingerprintTest, SeesAFileThatChangedUnderItsName) {
  SmallGguf small;
  const Fingerprint first = of(small);
  EXPECT_EQ(of(small).hex, first.hex);
  small.weight = 9;
  EXPECT_EQ(first.first_difference(of(small)), "model.weights");
}

}  // namespace
}  // namespace fermata
