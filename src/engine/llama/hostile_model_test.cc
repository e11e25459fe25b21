#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "engine/llama/gguf_file.h"
#include "engine/llama/gguf_fixture.h"
#include "engine/llama/prepare_model.h"

extern char** environ;

namespace fermata {
namespace {

std::string model_path() {
  const char* given = std::getenv("FERMATA_TINY_MODEL");
  return given != nullptr && given[0] != '\0' ? given : FERMATA_SHIPPED_MODEL;
}

// How a process of its own ended that tried to load this file: 0, an exit code, or the signal + 1000.
int outcome_of_loading(const std::string& path) {
  std::string program = FERMATA_LOAD_PROBE;
  std::string file = path;
  char* arguments[] = {program.data(), file.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int spawned = posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (spawned != 0) return -1;
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

class HostileModelTest : public testing::Test {
 protected:
  HostileModelTest() {
    setenv("XDG_CACHE_HOME", folder_.file("cache").c_str(), 1);
    std::filesystem::copy_file(model_path(), path_);
    const auto file = GgufFile::read(path_);
    EXPECT_TRUE(file);
    header_bytes_ = file->n_bytes();
    for (const GgufTensor& tensor : file->tensors()) header_bytes_ = std::min(header_bytes_, tensor.begin);
    big_ = file->n_bytes() > (20u << 20);
    n_tensors_ = file->tensors().size();
  }
  void poke(std::uint64_t at, char byte) {
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(byte);
  }
  char peek(std::uint64_t at) {
    std::ifstream file(path_, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    return static_cast<char>(file.get());
  }

  test::TempFolder folder_;
  std::string path_ = folder_.file("model.gguf");
  std::uint64_t header_bytes_ = 0;
  std::size_t n_tensors_ = 0;
  bool big_ = false;  // loading takes long: fewer rounds
};

TEST_F(HostileModelTest, TheWholeFileLoads) { EXPECT_EQ(outcome_of_loading(path_), 0); }

TEST_F(HostileModelTest, NoMutatedHeaderEndsTheProcess) {
  std::mt19937 random(5);
  const int n_rounds = big_ ? 24 : 240;
  for (int round = 0; round < n_rounds; ++round) {
    std::vector<std::pair<std::uint64_t, char>> undo;
    const int n_changes = 1 + static_cast<int>(random() % 3);
    for (int i = 0; i < n_changes; ++i) {
      // The keys that describe the shape stand first, the tensor table last; vocabulary fills the middle.
      const std::uint64_t table = std::min<std::uint64_t>(header_bytes_, 64 * n_tensors_);
      std::uint64_t at = random() % header_bytes_;
      if (random() % 2 == 0)
        at = random() % std::min<std::uint64_t>(header_bytes_, 2048);
      else if (random() % 2 == 0)
        at = header_bytes_ - 1 - random() % table;
      undo.emplace_back(at, peek(at));
      poke(at, random() % 2 == 0 ? static_cast<char>(random())
                                 : static_cast<char>(undo.back().second ^ (1 << (random() % 8))));
    }
    EXPECT_EQ(outcome_of_loading(path_), 0) << "round " << round << ", byte " << undo[0].first;
    for (auto change = undo.rbegin(); change != undo.rend(); ++change) poke(change->first, change->second);
  }
}

TEST_F(HostileModelTest, NoCutFileEndsTheProcess) {
  const auto size = std::filesystem::file_size(path_);
  for (const std::uintmax_t left :
       {size - 1, size / 2, static_cast<std::uintmax_t>(header_bytes_) + 1,
        static_cast<std::uintmax_t>(header_bytes_) / 2, std::uintmax_t{3}, std::uintmax_t{0}}) {
    std::filesystem::resize_file(path_, left);
    EXPECT_EQ(outcome_of_loading(path_), 0) << left;
  }
}

TEST_F(HostileModelTest, PrepareModelWritesWholeFilesOnly) {
  const PrepareOptions options{path_, folder_.file("prepared.gguf"), WeightType::kQ8_0, 2};
  const std::string& target = options.target;
  const auto source_size = std::filesystem::file_size(path_);
  auto made = prepare_model(options);
  ASSERT_TRUE(made) << made.error().message << made.error().detail;
  EXPECT_EQ(*made, Prepared::kWritten);
  const auto whole_size = std::filesystem::file_size(target);
  made = prepare_model(options);
  EXPECT_TRUE(made && *made == Prepared::kWasThere);
  std::filesystem::resize_file(target, whole_size - 100);  // as if a disk had lost its end
  test::write_file(target + ".part-1234-0", "GGUF, left by a killed run");
  made = prepare_model(options);
  EXPECT_TRUE(made && *made == Prepared::kWritten);
  EXPECT_EQ(std::filesystem::file_size(target), whole_size);
  EXPECT_EQ(std::filesystem::file_size(path_), source_size);
  EXPECT_EQ(outcome_of_loading(target), 0);
  EXPECT_FALSE(prepare_model({path_, folder_.file("no/such/folder/x.gguf"), WeightType::kQ8_0, 2}));
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
    EXPECT_EQ(entry.path().string().find(".part"), std::string::npos);
}

TEST_F(HostileModelTest, PrepareModelReplacesAnotherTypeOnlyWhenAsked) {
  PrepareOptions options{path_, folder_.file("prepared.gguf"), WeightType::kQ8_0, 2};
  ASSERT_TRUE(prepare_model(options));
  options.type = WeightType::kF16;
  const auto refused = prepare_model(options);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("has Q8_0 weights, not F16"), std::string::npos) << refused.error().message;
  options.rewrite = true;
  const auto made = prepare_model(options);
  EXPECT_TRUE(made && *made == Prepared::kWritten);
  EXPECT_EQ(GgufFile::read(options.target)->integer("general.file_type"), 1u);  // F16
}

}  // namespace
}  // namespace fermata
