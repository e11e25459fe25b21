// What `fermata` says and ends with, on a model.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>

#include "cli/program_fixture.h"

namespace fermata::cli {
namespace {

std::string model_path() {
  const char* given = std::getenv("FERMATA_TINY_MODEL");
  return given != nullptr && given[0] != '\0' ? given : FERMATA_SHIPPED_MODEL;
}

class ProgramModelTest : public testing::Test {
 protected:
  ProgramModelTest() { std::filesystem::copy_file(model_path(), model_); }

  // The bytes of `from` in the model's header become `to`, of the same length.
  void change(const std::string& from, const std::string& to) {
    std::string bytes = fermata::test::read_file(model_);
    const std::size_t at = bytes.find(from);
    ASSERT_NE(at, std::string::npos);
    ASSERT_EQ(from.size(), to.size());
    fermata::test::write_file(model_, bytes.replace(at, to.size(), to));
  }
  bool has_scratch() const {
    for (const auto& entry : std::filesystem::directory_iterator(program_.folder()))
      if (entry.path().string().find(".part") != std::string::npos) return true;
    return false;
  }
  test::Program program_;
  std::string model_ = program_.file("model.gguf");
};

TEST_F(ProgramModelTest, ProgressOffATerminalIsAFewWholeLines) {
  const test::Outcome outcome = program_.run({"doctor", "--json", "-m", model_});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_LE(test::n_lines(outcome.err), 3u) << outcome.err;
  EXPECT_EQ(outcome.err.find_first_of("\r\x1b"), std::string::npos);
  EXPECT_TRUE(outcome.err.empty() || outcome.err.back() == '\n');
}

TEST_F(ProgramModelTest, ABrokenChatTemplateIsSaidOnce) {
  change("{% for message in messages %}", "{% fro message in messages %}");
  const test::Outcome outcome = program_.run({"run", "-m", model_, "-n", "1", "hello"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string said = "fermata: the model's chat template is broken; the prompt is continued as it is: ";
  const std::size_t at = outcome.err.find(said);
  ASSERT_NE(at, std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find(said, at + 1), std::string::npos);
  EXPECT_EQ(test::n_lines(outcome.err.substr(at)), 1u) << outcome.err;
  EXPECT_EQ(outcome.err.find("jinja"), std::string::npos) << "no noise of libraries: " << outcome.err;
  EXPECT_EQ(program_.run({"run", "-m", model_, "-n", "1", "--raw", "hello"}).err.find(said), std::string::npos);

  const test::Outcome refused = program_.run({"run", "-m", model_, "--system", "Be brief.", "hello"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("--system needs a chat template"), std::string::npos) << refused.err;
}

TEST_F(ProgramModelTest, ATemplateThatNestsWithoutEndIsABrokenOne) {
  const std::string before = "{% for message in messages %}";
  std::string bytes = fermata::test::read_file(model_);
  const std::size_t at = bytes.find(before);
  ASSERT_NE(at, std::string::npos);
  // The template has its length before it; 32 bytes are the alignment of what follows.
  const std::string more(32 * 10'000, '(');
  std::uint64_t n_bytes = 0;
  std::memcpy(&n_bytes, bytes.data() + at - sizeof n_bytes, sizeof n_bytes);
  n_bytes += more.size();
  std::memcpy(bytes.data() + at - sizeof n_bytes, &n_bytes, sizeof n_bytes);
  fermata::test::write_file(model_, bytes.insert(at + 3, more));
  const test::Outcome outcome = program_.run({"run", "-m", model_, "-n", "1", "hello"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("template is broken; the prompt is continued as it is"), std::string::npos) << outcome.err;
}

TEST_F(ProgramModelTest, AModelWithoutATemplateIsContinuedAsItIs) {
  change("tokenizer.chat_template", "tokenizer.chat_templatx");
  const test::Outcome outcome = program_.run({"run", "-m", model_, "-n", "1", "hello"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("has no chat template; the prompt is continued as it is"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(program_.run({"run", "-m", model_, "--system", "Be brief.", "hello"}).code, 2);
}

TEST_F(ProgramModelTest, ATemplateOfTheUserIsUsedOrRefusedWithAReason) {
  const std::string path = program_.file("chat.jinja");
  const auto run_with = [&](const std::string& source) {
    fermata::test::write_file(path, source);
    return program_.run({"run", "-m", model_, "-n", "1", "--chat-template-file", path, "hello"});
  };
  EXPECT_EQ(run_with("{{ messages[0].content }}").code, 0);
  change("{% for message in messages %}", "{% fro message in messages %}");
  const test::Outcome instead = run_with("{{ messages[0].content }}");  // the model's own does not matter
  EXPECT_EQ(instead.code, 0) << instead.err;
  EXPECT_EQ(instead.err.find("broken"), std::string::npos) << instead.err;

  for (const auto& [source, why] : std::vector<std::pair<std::string, std::string>>{
           {"", "no template"},
           {"{% fro m in messages %}", "fro"},
           {"{{ raise_exception('never again') }}", "never again"},
           {"{% for i in range(1000000000000) %}{% endfor %}", "does it end?"},
           {std::string(2 << 20, 'x'), "longer than is allowed"}}) {
    const test::Outcome refused = run_with(source);
    EXPECT_EQ(refused.code, 2) << why << refused.err;
    EXPECT_NE(refused.err.find(path), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find(why), std::string::npos) << refused.err;
  }
  ASSERT_EQ(mkfifo(program_.file("pipe").c_str(), 0600), 0);
  for (const std::string& odd : {program_.file("pipe"), std::string("/dev/zero"), program_.folder()}) {
    const test::Outcome refused = program_.run({"run", "-m", model_, "--chat-template-file", odd, "hello"});
    EXPECT_EQ(refused.code, 2) << odd;
    EXPECT_NE(refused.err.find("is not a regular file"), std::string::npos) << refused.err;
  }
}

TEST_F(ProgramModelTest, APoolThatDoesNotFitSaysWhatToLower) {
  program_.limit_memory(3000);
  const test::Outcome outcome = program_.run({"run", "-m", model_, "-c", "8388608", "hello"});
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  for (const char* word : {"8388608 cells", "MiB", "-c", "--kv"})
    EXPECT_NE(outcome.err.find(word), std::string::npos) << outcome.err;
}

TEST_F(ProgramModelTest, AStepLargerThanThePoolIsSaid) {
  const test::Outcome outcome = program_.run({"bench", "core", "-m", model_, "-c", "256", "--prefill-rows", "512"});
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("fewer cells (256) than one step has rows (512)"), std::string::npos) << outcome.err;
}

TEST_F(ProgramModelTest, ASignalWhileLoadingOrAnsweringEndsItWithItsCode) {
  const std::vector<std::string> long_answer = {"run", "-m", model_, "-c", "100000", "--raw", "--ignore-eos", "hello"};
  for (const int signal : {SIGTERM, SIGINT}) {
    // Either moment gives the same code, so it does not matter which one this is.
    const test::Outcome outcome = program_.run(long_answer, {}, [&](pid_t child, int) {
      struct stat status {};
      while (stat(program_.file("err").c_str(), &status) != 0 || status.st_size == 0) sched_yield();  // it loads
      kill(child, signal);
    });
    EXPECT_EQ(outcome.code, 128 + signal) << outcome.err;
  }
}

TEST_F(ProgramModelTest, AStoppedPreparationLeavesNothingHalfMade) {
  const std::string target = program_.file("prepared.gguf");
  const test::Outcome outcome =
      program_.run({"prepare-model", model_, target, "--type", "F16"}, {}, [&](pid_t child, int) {
        struct stat status {};
        while (stat(program_.file("err").c_str(), &status) != 0 || status.st_size == 0) sched_yield();  // it writes
        kill(child, SIGTERM);
      });
  EXPECT_TRUE(outcome.code == 143 || outcome.code == 0) << outcome.code << outcome.err;
  EXPECT_EQ(std::filesystem::exists(target), outcome.code == 0);
  EXPECT_FALSE(has_scratch());
  EXPECT_EQ(program_.run({"prepare-model", model_, target, "--type", "F16"}).code, 0);

  const test::Outcome other = program_.run({"prepare-model", model_, target, "--type", "Q8_0"});
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("has F16 weights, not Q8_0; choose another name, or --force"), std::string::npos);
  EXPECT_EQ(program_.run({"prepare-model", model_, target, "--type", "Q8_0", "--force"}).code, 0);
}

TEST_F(ProgramModelTest, BenchNamesTheModelAsSha256sumDoes) {
  const test::Outcome outcome = program_.run({"bench", "core", "-m", model_, "--only", "prefill", "--prompt-max", "0"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::size_t at = outcome.out.find("\"model_sha256\": \"");
  ASSERT_NE(at, std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find('"', at + 17), at + 17 + 64) << outcome.out;
  EXPECT_NE(outcome.out.find("\"sources\": "), std::string::npos);
}

}  // namespace
}  // namespace fermata::cli
