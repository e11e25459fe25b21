#include "engine/llama/gguf_file.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <random>

#include "engine/llama/gguf_fixture.h"

namespace fermata {
namespace {

using test::GgufBytes;
using test::SmallGguf;
using test::TempFolder;
using test::write_file;

class GgufFileTest : public testing::Test {
 protected:
  ~GgufFileTest() override { close(memory_); }
  Result<GgufFile> read(std::string_view bytes) {
    write_file(path_, bytes);
    return GgufFile::read(path_);
  }
  // The message that refuses these bytes; empty if they are taken.
  std::string refusal(std::string_view bytes) {
    const auto file = read(bytes);
    return file ? std::string() : file.error().message;
  }
  TempFolder folder_;
  int memory_ = memfd_create("model.gguf", MFD_CLOEXEC);  // thousands of files, none on a disk
  std::string path_ = "/proc/self/fd/" + std::to_string(memory_);
};

TEST_F(GgufFileTest, ReadsWhatIsThere) {
  const auto file = read(SmallGguf{}.bytes());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->text("general.architecture"), "llama");
  EXPECT_EQ(file->integer("llama.block_count"), 2u);
  EXPECT_EQ(file->number("llama.rope.freq_base"), 10000.0);
  EXPECT_EQ(file->integer("general.architecture"), std::nullopt);
  EXPECT_EQ(file->text("llama.block_count"), std::nullopt);
  EXPECT_EQ(file->text("no.such.key"), std::nullopt);
  ASSERT_EQ(file->tensors().size(), 2u);
  EXPECT_EQ(file->tensors()[1].n_bytes, 128u);
  EXPECT_EQ(file->tensors()[1].begin + 128, file->n_bytes());
  EXPECT_TRUE(check_model_kind(*file));
}

TEST_F(GgufFileTest, RefusesEveryCutWithASentence) {
  const std::string whole = SmallGguf{}.bytes();
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const auto file = read(std::string_view(whole).substr(0, n));
    ASSERT_FALSE(file) << "cut after " << n;
    EXPECT_EQ(file.error().code, Code::kModel);
    EXPECT_FALSE(file.error().message.empty());
  }
}

TEST_F(GgufFileTest, SurvivesRandomMutations) {
  std::mt19937 random(7);
  const std::string whole = SmallGguf{}.bytes();
  int n_refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = whole;
    const int n_changes = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < n_changes; ++i) bytes[random() % (bytes.size() - 384)] = static_cast<char>(random());
    const auto file = read(bytes);
    if (!file || !check_model_kind(*file)) ++n_refused;
    if (!file) continue;
    for (const GgufTensor& tensor : file->tensors()) {
      ASSERT_LE(tensor.begin, bytes.size());
      ASSERT_LE(tensor.n_bytes, bytes.size() - tensor.begin);
    }
  }
  EXPECT_GT(n_refused, 1000);
}

TEST_F(GgufFileTest, RefusesWhatIsNoModelFile) {
  EXPECT_NE(GgufFile::read(folder_.file("absent.gguf")).error().message.find("cannot be opened"), std::string::npos);
  EXPECT_NE(GgufFile::read(folder_.path()).error().message.find("not a regular file"), std::string::npos);
  EXPECT_NE(refusal("").find("ends inside"), std::string::npos);
  EXPECT_NE(refusal("PK\3\4 this is an archive").find("begin with GGUF"), std::string::npos);
  EXPECT_NE(refusal(std::string("GGUF\1\0\0\0", 8) + std::string(16, '\0')).find("version"), std::string::npos);
}

TEST_F(GgufFileTest, RefusesLyingCounts) {
  constexpr std::uint64_t huge = ~std::uint64_t{0};
  EXPECT_NE(refusal(GgufBytes().begin(huge, 0).bytes()).find("tensors"), std::string::npos);
  EXPECT_NE(refusal(GgufBytes().begin(0, huge).bytes()).find("metadata keys"), std::string::npos);
  EXPECT_NE(refusal(GgufBytes().begin(0, 1).number(huge).bytes()).find("impossible length"), std::string::npos);
  EXPECT_NE(refusal(GgufBytes().begin(0, 1).string("k").number<std::uint32_t>(8).number(huge).bytes()).find("length"),
            std::string::npos);
  EXPECT_NE(
      refusal(
          GgufBytes().begin(0, 1).string("k").number<std::uint32_t>(9).number<std::uint32_t>(4).number(huge).bytes())
          .find("longer than the file"),
      std::string::npos);
  // An array of arrays could nest without end.
  EXPECT_NE(refusal(GgufBytes()
                        .begin(0, 1)
                        .string("k")
                        .number<std::uint32_t>(9)
                        .number<std::uint32_t>(9)
                        .number<std::uint64_t>(0)
                        .bytes())
                .find("unknown type"),
            std::string::npos);
}

TEST_F(GgufFileTest, RefusesLyingTensors) {
  auto one = [](auto&&... fields) {
    GgufBytes out;
    out.begin(1, 0).string("t");
    (out.number(fields), ...);
    return out.pad().data(64, 0).bytes();
  };
  using U32 = std::uint32_t;
  using U64 = std::uint64_t;
  EXPECT_EQ(refusal(one(U32{1}, U64{16}, U32{0}, U64{0})), "");
  EXPECT_NE(refusal(one(U32{5}, U64{1}, U64{1}, U64{1})).find("dimensions"), std::string::npos);
  EXPECT_NE(refusal(one(U32{1}, U64{0}, U32{0}, U64{0})).find("shape"), std::string::npos);
  EXPECT_NE(refusal(one(U32{2}, U64{1} << 39, U64{1} << 39, U32{0}, U64{0})).find("shape"), std::string::npos);
  EXPECT_NE(refusal(one(U32{1}, U64{16}, U32{4}, U64{0})).find("type"), std::string::npos);  // removed: Q4_2
  EXPECT_NE(refusal(one(U32{1}, U64{16}, U32{999}, U64{0})).find("type"), std::string::npos);
  EXPECT_NE(refusal(one(U32{1}, U64{16}, U32{2}, U64{0})).find("blocks"), std::string::npos);  // Q4_0: blocks of 32
  EXPECT_NE(refusal(one(U32{1}, U64{16}, U32{0}, U64{8})).find("cut off"), std::string::npos);
  EXPECT_NE(refusal(one(U32{1}, U64{16}, U32{0}, ~U64{0})).find("cut off"), std::string::npos);
  EXPECT_NE(refusal(one(U32{1}, U64{1}, U32{0}, U64{4})).find("aligned"), std::string::npos);
}

TEST_F(GgufFileTest, RefusesTheSameNameTwice) {
  EXPECT_NE(refusal(GgufBytes().begin(0, 2).u32("k", 1).u32("k", 2).bytes()).find("twice"), std::string::npos);
  EXPECT_NE(refusal(GgufBytes().begin(2, 0).tensor("t", 1, 1, 0).tensor("t", 1, 1, 0).pad().data(64, 0).bytes())
                .find("twice"),
            std::string::npos);
}

TEST_F(GgufFileTest, RefusesKindsThatCannotBeMirrored) {
  auto code = [&](const SmallGguf& small) {
    const auto file = read(small.bytes());
    EXPECT_TRUE(file);
    const auto kind = check_model_kind(*file);
    return kind ? std::optional<Code>() : std::optional(kind.error().code);
  };
  SmallGguf small;
  EXPECT_EQ(code(small), std::nullopt);
  small.arch = "bert";
  EXPECT_EQ(code(small), Code::kUnsupported);
  small.arch = "mamba";
  EXPECT_EQ(code(small), Code::kUnsupported);
  small = {};
  small.n_heads = 0;
  EXPECT_EQ(code(small), Code::kModel);
  small = {};
  small.n_heads_kv = 3;
  EXPECT_EQ(code(small), Code::kModel);
  small = {};
  small.n_layers = 4'000'000'000u;
  EXPECT_EQ(code(small), Code::kModel);
}

TEST_F(GgufFileTest, AsksForAllPartsOfASplitModel) {
  auto part = [](std::uint32_t number) {
    return GgufBytes()
        .begin(1, 2)
        .u32("split.count", 2)
        .u32("split.no", number)
        .tensor("t" + std::to_string(number), 4, 1, 0)
        .pad()
        .data(32, 1)
        .bytes();
  };
  const std::string first = folder_.file("m-00001-of-00002.gguf");
  write_file(first, part(0));
  EXPECT_FALSE(read_model_files(first));
  write_file(folder_.file("m-00002-of-00002.gguf"), part(1));
  const auto both = read_model_files(first);
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_EQ(both->size(), 2u);
  write_file(path_, part(0));  // a name that does not say which part it is
  EXPECT_NE(read_model_files(path_).error().message.find("first part"), std::string::npos);
}

}  // namespace
}  // namespace fermata
