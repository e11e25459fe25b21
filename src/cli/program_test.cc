// What `fermata` says and ends with, on the scripted engine.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <filesystem>

#include "api/http/api_keys.h"
#include "base/regular_file.h"
#include "cli/program_fixture.h"

namespace fermata::cli {
namespace {

class ProgramTest : public testing::Test {
 protected:
  // A command line that must be refused as wrong usage, in words that hold `why`.
  void expect_refused(const std::vector<std::string>& words, const std::string& why) {
    const test::Outcome outcome = program_.run(words);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_NE(outcome.err.find(why), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
  // A server that ends before it says that it listens, in one line.
  void expect_no_start(std::vector<std::string> words, int code, const std::string& why) {
    words.insert(words.begin(), "serve");
    const test::Outcome outcome = program_.run(words);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_TRUE(outcome.err.starts_with("fermata: ")) << outcome.err;
    EXPECT_EQ(test::n_lines(outcome.err), 1u) << outcome.err;
    EXPECT_NE(outcome.err.find(why), std::string::npos) << outcome.err;
    EXPECT_FALSE(outcome.err.ends_with(".\n")) << outcome.err;
    EXPECT_EQ(outcome.err.find(".:"), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
  test::Program program_;
};

TEST_F(ProgramTest, AnswersOnStandardOutputAlone) {
  const test::Outcome outcome = program_.run({"run", "--engine", "fake", "--seed", "1", "-n", "20", "hello"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out, "");
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(program_.run({"run", "--engine", "fake", "--seed", "1", "-n", "20", "hello"}).out, outcome.out);
}

TEST_F(ProgramTest, ThePromptMayFollowAnyFlag) {
  for (const std::vector<std::string>& flag : std::vector<std::vector<std::string>>{
           {"--stop", "x"}, {"--logit-bias", "5=1"}, {"--dry-sequence-breaker", ";"}, {"--seed", "1"}}) {
    const test::Outcome outcome = program_.run({"run", "--engine", "fake", "-n", "1", flag[0], flag[1], "hello"});
    EXPECT_EQ(outcome.code, 0) << flag[0] << outcome.err;
  }
}

TEST_F(ProgramTest, ReadsThePromptFromStandardInput) {
  program_.stdin_from("hello");
  const std::vector<std::string> rest = {"--engine", "fake", "--seed", "1", "-n", "20"};
  std::vector<std::string> piped = {"run", "-"};
  std::vector<std::string> given = {"run", "hello"};
  piped.insert(piped.end(), rest.begin(), rest.end());
  given.insert(given.end(), rest.begin(), rest.end());
  EXPECT_EQ(program_.run(piped).out, program_.run(given).out);
}

TEST_F(ProgramTest, NothingIsNoPrompt) {
  expect_refused({"run", "--engine", "fake", ""}, "the prompt is empty: there is nothing to answer");
  expect_refused({"run", "--engine", "fake", " \n"}, "the prompt is nothing but white space");
  expect_refused({"run", "--engine", "fake", "-"}, "standard input is empty: there is nothing to answer");
  expect_refused({"run", "--engine", "fake", "--raw", "-"}, "standard input is empty");
  program_.stdin_from(" \n\t");
  expect_refused({"run", "--engine", "fake", "-"}, "standard input is nothing but white space");
  const test::Outcome continued = program_.run({"run", "--engine", "fake", "-n", "1", "--raw", "-"});
  EXPECT_EQ(continued.code, 0) << "what is continued as it is may be white space: " << continued.err;
}

TEST_F(ProgramTest, AFlagOfLlamaCppIsToldWithWhatStandsForIt) {
  expect_refused({"serve", "-np", "4"}, "'fermata serve' has no flag '-np', which is llama.cpp's: leave it out");
  expect_refused({"serve", "-md"}, "'fermata serve' has no flag '-md'");  // and not -m with the value d
  expect_refused({"chat", "-sys=x"}, "'fermata chat' has no flag '-sys', which is llama.cpp's: say --system TEXT");
  expect_refused({"serve", "--parallel=4"}, "'--parallel', which is llama.cpp's");
  expect_refused({"serve", "--api-key", "secret"}, "fermata new-key");
  expect_refused({"run", "-p", "hello"}, "the prompt stands without a flag");
  // CLI11 reads these as -c tk, -h f and -n gl.
  expect_refused({"serve", "-ctk", "q8_0"}, "has no flag '-ctk', which is llama.cpp's: say --kv");
  expect_refused({"serve", "-hf", "some/model"}, "nothing is downloaded");
  expect_refused({"run", "-ngl", "99", "hello"}, "has no flag '-ngl'");
  expect_refused({"run", "-n", "x", "hello"}, "--max-tokens: takes");
  for (const char* told : {"'-np'", "'-ngl'", "'--flash-attn'"})
    expect_refused({"serve", "-np", "4", "-c", "4096", "-ngl", "99", "--flash-attn", "on"}, told);
  expect_refused({"serve", "-c", "0"}, "not '0'; leave it out, or say how many tokens");
  expect_refused({"serve", "-t", "-1"}, "not '-1'; leave it out: it chooses");
  EXPECT_EQ(program_.run({"serve", "-ngl", "99", "--help"}).code, 0) << "help is help";
}

TEST_F(ProgramTest, TheNamesThatLlamaServerHasForTheSameAreTaken) {
  const test::Outcome outcome =
      program_.run({"run", "--engine", "fake", "--seed", "1", "--ctx-size", "512", "--n-predict", "9", "x"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, program_.run({"run", "--engine", "fake", "--seed", "1", "-c", "512", "-n", "9", "x"}).out);
  expect_refused({"run", "--engine", "fake", "--seed", "1", "--ctx-size", "1", "x"},
                 "--ctx: takes a whole number from 128");
}

TEST_F(ProgramTest, WhatCannotBeWrittenIsNoSuccess) {
  const std::vector<std::vector<std::string>> commands = {
      {"--help"},
      {"--version"},
      {"run", "--help"},
      {"config", "--example"},
      {"completion", "fish"},
      {"man"},
      {"doctor", "--engine", "fake"},
      {"doctor", "--json", "--engine", "fake"},
      {"demo", "--engine", "fake"},
      {"run", "--engine", "fake", "-n", "20", "hello"},
      {"bench", "core", "--engine", "fake", "--only", "prefill", "--prompt-max", "0"},
  };
  for (const auto& command : commands) {
    const test::Outcome outcome = program_.run(command, "/dev/full");
    EXPECT_EQ(outcome.code, 1) << command[0] << outcome.err;
    EXPECT_NE(outcome.err.find("standard output"), std::string::npos) << command[0] << outcome.err;
  }
}

TEST_F(ProgramTest, RefusesWhatItCannotDoByName) {
  expect_refused({"run", "--engine", "fake", "--seed", "99999999999999999999", "x"}, "--seed");
  expect_refused({"run", "--engine", "fake", "--logit-bias", "1.5=2", "x"}, "--logit-bias");
  expect_refused({"run", "--engine", "fake", "--timeout", "nan", "x"}, "--timeout");
  expect_refused({"run", "--engine", "fake", "-n", "5x", "x"}, "--max-tokens");
  expect_refused({"run", "--engine", "fake", "-c", "1e9", "x"}, "--ctx");
  expect_refused({"run", "-m", "", "x"}, "--model");
  expect_refused({"run", "-m", "/no/model", "--temp", "-1", "x"}, "temperature");
  expect_refused({"bench", "core", "--seconds", "inf"}, "--seconds");
  expect_refused({"bench", "core", "--json", ""}, "--json");
  expect_refused({"prepare-model", "", "x.gguf"}, "source");
  for (const char* flag : {"--model-name", "--alias"}) {
    for (const char* name : {"a\x1b[2J", "a\nb", "\x7f", "a\xC2\x9B", "\xFF"})
      expect_refused({"serve", flag, name}, std::string(flag) + ": takes a name in UTF-8 without control characters");
    expect_refused({"serve", flag, ""}, std::string(flag) + ": must not be empty");
  }
  expect_refused({"run", "--raw", "--system", "Be brief.", "x"}, "--system");
  expect_refused({"run", "--engine", "fake", "--system", "Be brief.", "x"}, "--system needs a chat template");
}

TEST_F(ProgramTest, WithoutACommandItPrintsItsHelp) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{}, {"bench"}}) {
    const test::Outcome outcome = program_.run(words);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.err, "");
    std::vector<std::string> asked = words;
    asked.push_back("--help");
    EXPECT_EQ(outcome.out, program_.run(asked).out);
    EXPECT_NE(outcome.out.find("Usage: fermata"), std::string::npos) << outcome.out;
  }
}

TEST_F(ProgramTest, WhatIsMisspelledIsToldWithTheNearestName) {
  expect_refused({"serv"}, "'fermata' has no command 'serv'; did you mean 'serve'?");
  expect_refused({"sevre", "--port", "80"}, "'fermata' has no command 'sevre'; did you mean 'serve'?");
  expect_refused({"nothing-like-it"}, "'fermata' has no command 'nothing-like-it'\n");
  expect_refused({"bench", "cor"}, "'fermata bench' has no command 'cor'; did you mean 'core'?");
  expect_refused({"serve", "--prot", "80"}, "'fermata serve' has no flag '--prot'; did you mean '--port'?");
  expect_refused({"serve", "--prot=80"}, "'fermata serve' has no flag '--prot'; did you mean '--port'?");
  expect_refused({"run", "--tmep", "1", "hello"}, "'fermata run' has no flag '--tmep'; did you mean '--temp'?");
  expect_refused({"--port", "80", "serve"}, "'--port' is a flag of 'fermata serve' and stands behind that");
  expect_refused({"doctor", "please"}, "'fermata doctor' does not know what to do with 'please'");
  expect_refused({"serve", "--prot", "80"}, "'fermata serve --help' tells more.");
  expect_refused({"serve", "--port", "x"}, "--port: takes a whole number from 0 to 65535, not 'x'");
  expect_refused({"serve", "--log-level", "loud"}, "--log-level: takes debug|");
}

TEST_F(ProgramTest, AVariableOfServeIsReadByServeAloneAndNamedIfItIsWrong) {
  program_.set("FERMATA_PORT", "x");
  program_.set("FERMATA_CHAT_TEMPLATE_FILE", "");
  EXPECT_EQ(program_.run({"run", "--engine", "fake", "-n", "1", "hello"}).code, 0);
  EXPECT_EQ(program_.run({"config", "--example"}).code, 0);
  expect_refused({"serve"},
                 "--port: takes a whole number from 0 to 65535, not 'x', which is in the variable FERMATA_PORT\n");
  expect_refused({"serve", "--port", "y"}, "not 'y'\n");
}

TEST_F(ProgramTest, WithoutAModelItSaysWhereOneWasLookedForAndHowToGetOne) {
  // Away from a tree of sources, which may have one.
  std::filesystem::copy_file(FERMATA_PROGRAM, program_.file("fermata"));
  program_.be(program_.file("fermata"));
  program_.set("XDG_DATA_HOME", program_.file("data"));
  program_.set("FERMATA_MODEL", "");
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"doctor"}, {"doctor", "--json"}, {"run", "x"}, {"serve", "--port", "0"}, {"demo"}, {"bench", "core"}}) {
    const test::Outcome outcome = program_.run(words);
    EXPECT_EQ(outcome.code, 3) << words[0];
    for (const std::string& told :
         {program_.file("data/fermata/default.gguf"), std::string("make model"), std::string("--model")})
      EXPECT_NE(outcome.err.find(told), std::string::npos) << words[0] << outcome.err;
    EXPECT_EQ(outcome.out.find("cpu") != std::string::npos, words[0] == "doctor") << "the machine needs none";
  }
  EXPECT_EQ(program_.run({"doctor", "--engine", "fake"}).code, 0) << "none is wanted";
}

TEST_F(ProgramTest, ANewKeyIsPrintedOnceAndItsLineIsAppended) {
  const test::Outcome printed = program_.run({"new-key", "app", "--tenant", "acme", "--scopes", "use,admin"});
  EXPECT_EQ(printed.code, 0) << printed.err;
  EXPECT_EQ(test::n_lines(printed.out), 2u) << printed.out;
  const std::string key = printed.out.substr(0, printed.out.find('\n'));
  const std::string line = printed.out.substr(key.size() + 1);
  EXPECT_TRUE(key.starts_with("fermata_")) << key;
  EXPECT_TRUE(line.starts_with("app acme use,admin blake2b:")) << line;
  EXPECT_EQ(api::ApiKeys::parse(line)->find(key)->principal.name, "app");

  const std::string file = program_.file("keys");
  const test::Outcome first = program_.run({"new-key", "one", "--append", file});
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(test::n_lines(first.out), 1u);
  EXPECT_EQ((first.err + fermata::test::read_file(file)).find(first.out.substr(0, first.out.size() - 1)),
            std::string::npos)
      << "kept nowhere";
  struct stat status {};
  ASSERT_EQ(stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);

  fermata::test::write_file(file, "# ours\n" + fermata::test::read_file(file) + "# no end of line");
  ASSERT_EQ(chmod(file.c_str(), 0640), 0);
  const test::Outcome second = program_.run({"new-key", "two", "--append", file});
  EXPECT_EQ(second.code, 0) << second.err;
  ASSERT_EQ(stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u) << "who could read it still can";
  const auto keys = api::ApiKeys::load(file);
  ASSERT_TRUE(keys) << keys.error().message;
  EXPECT_EQ(keys->size(), 2u);
  EXPECT_TRUE(keys->find(first.out.substr(0, first.out.size() - 1)));
  EXPECT_TRUE(keys->find(second.out.substr(0, second.out.size() - 1)));
  EXPECT_TRUE(fermata::test::read_file(file).starts_with("# ours\n"));
}

TEST_F(ProgramTest, ALinkToTheFileOfKeysStaysOne) {
  namespace fs = std::filesystem;
  fs::create_directory(program_.file("data"));
  fs::create_symlink("data/keys", program_.file("link"));  // relative to where it lies, and to nothing yet
  fs::create_symlink(program_.file("link"), program_.file("link to it"));
  for (std::size_t n = 1; n <= 2; ++n) {
    EXPECT_EQ(program_.run({"new-key", "one", "--append", program_.file("link to it")}).code, 0);
    EXPECT_TRUE(fs::is_symlink(program_.file("link")) && fs::is_symlink(program_.file("link to it")));
    EXPECT_EQ(api::ApiKeys::load(program_.file("data/keys"))->size(), n);
  }
  fs::create_symlink("round", program_.file("round"));
  EXPECT_EQ(program_.run({"new-key", "one", "--append", program_.file("round")}).code, 1);
  EXPECT_TRUE(fs::is_symlink(program_.file("round")));
}

TEST_F(ProgramTest, AKeyThatCannotBeIsRefusedAndTheFileStays) {
  const std::string file = program_.file("keys");
  expect_refused({"new-key", "a b"}, "the name of a key has");
  expect_refused({"new-key", "a", "--scopes", "use,root"}, "scopes are use, review and admin");
  expect_refused({"new-key", "a/b", "--append", file}, "the name of a key has");
  EXPECT_NE(access(file.c_str(), F_OK), 0);
  const std::string broken = "one - use fermata_SECRET\n";
  fermata::test::write_file(file, broken);
  ASSERT_EQ(chmod(file.c_str(), 0600), 0);
  expect_refused({"new-key", "a", "--append", file}, "line 1");
  EXPECT_EQ(program_.run({"new-key", "a", "--append", file}).err.find("SECRET"), std::string::npos);
  ASSERT_EQ(chmod(file.c_str(), 0666), 0);
  expect_refused({"new-key", "a", "--append", file}, "may be written by others");
  EXPECT_EQ(fermata::test::read_file(file), broken);
  EXPECT_EQ(program_.run({"new-key", "a", "--append", program_.file("no/such/folder")}).code, 1);
  const std::string pipe = program_.file("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(program_.run({"new-key", "a", "--append", pipe}).code, 1);
}

// A port that somebody has, as long as this lives.
class TakenPort {
 public:
  TakenPort() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t n = sizeof address;
    EXPECT_EQ(bind(socket_.number(), reinterpret_cast<sockaddr*>(&address), n), 0);
    EXPECT_EQ(listen(socket_.number(), 1), 0);
    EXPECT_EQ(getsockname(socket_.number(), reinterpret_cast<sockaddr*>(&address), &n), 0);
    number = std::to_string(ntohs(address.sin_port));
  }
  std::string number;

 private:
  Descriptor socket_;
};

TEST_F(ProgramTest, AServerThatCannotListenSaysWhatToDo) {
  const TakenPort taken;
  const std::string keys = program_.file("keys");
  const std::string none = program_.file("none");
  ASSERT_EQ(program_.run({"new-key", "one", "--append", keys}).code, 0);
  expect_no_start(
      {"--engine", "fake", "--port", taken.number}, 1,
      "port " + taken.number + " of 127.0.0.1 is in use; stop the other program, or take another with --port");
  expect_no_start({"--engine", "fake", "--port", "0", "--host", "nowhere"}, 2,
                  "'nowhere' is no address; --host takes an address of this machine");
  expect_no_start({"--engine", "fake", "--port", "0", "--host", "192.0.2.1", "--api-key-file", keys}, 2,
                  "this machine has no address 192.0.2.1; --host takes");
  expect_no_start({"--engine", "fake", "--port", "0", "--host", "0.0.0.0"}, 2,
                  "make keys with 'fermata new-key NAME --append keys'");
  expect_no_start({"--engine", "fake", "--port", "0", "--api-key-file", none}, 1,
                  "no file of API keys at " + none + "; 'fermata new-key NAME --append " + none + "' makes one");
  expect_no_start({"--engine", "fake", "--port", "0", "--api-key-file", program_.folder()}, 1,
                  program_.folder() + " is not a regular file");
  expect_no_start({"--engine", "fake", "--port", "0", "--allow-host", "a b"}, 2,
                  "an allowed host is a name or an address, with :port or without: a b");
  expect_no_start({"--engine", "fake", "--port", "0", "--allow-origin", "evil"}, 2,
                  "an allowed origin is http://name[:port] or https://name[:port]: evil");
}

TEST_F(ProgramTest, WhatCannotBeLoadedIsSaidBeforeItListens) {
  const std::string garbage = program_.file("garbage.gguf");
  const std::string none = program_.file("none");
  fermata::test::write_file(garbage, "GGML and more");
  expect_no_start({"--port", "0", "-m", none}, 3, none + " cannot be opened: No such file");
  expect_no_start({"--port", "0", "-m", garbage}, 3, "it does not begin with GGUF");
  expect_no_start({"--port", "0", "-m", garbage, "--kv", "f32"}, 2, "--kv takes f16, bf16 or q8_0");
  expect_no_start({"--port", "0", "-m", garbage, "--chat-template-file", none}, 2, none + " cannot be opened");
  expect_no_start({"--port", "0", "--engine", "fake", "--chat-template-file", garbage}, 2,
                  "--chat-template-file needs a model");
}

TEST_F(ProgramTest, ANamedModelThatIsNotThereIsSaid) {
  program_.set("FERMATA_MODEL", program_.file("absent.gguf"));
  const test::Outcome outcome = program_.run({"doctor"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.err.find("absent.gguf cannot be opened"), std::string::npos) << outcome.err;
  const std::string long_name(5000, 'x');
  EXPECT_EQ(program_.run({"doctor", "-m", long_name}).code, 3);
}

TEST_F(ProgramTest, NeverWaitsForAPipeOrDevice) {
  const std::string pipe = program_.file("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(program_.run({"run", "-m", pipe, "x"}).code, 3);
  EXPECT_EQ(program_.run({"doctor", "-m", "/dev/zero"}).code, 3);
  EXPECT_EQ(program_.run({"prepare-model", pipe, program_.file("x.gguf")}).code, 3);
  expect_refused({"run", "--engine", "fake", "--grammar-file", pipe, "x"}, "is not a regular file");
}

TEST_F(ProgramTest, ASignalEndsItAtOnceAndIsNamed) {
  const auto ended_by = [&](int signal) {
    return program_.run({"run", "--engine", "fake", "-"}, {}, [&](pid_t child, int input) {
      ASSERT_EQ(write(input, "x", 1), 1);
      for (int n_left = 1; n_left > 0; sched_yield()) ASSERT_EQ(ioctl(input, FIONREAD, &n_left), 0);
      kill(child, signal);  // it has read the letter, and waits for more of its prompt
    });
  };
  EXPECT_EQ(ended_by(SIGTERM).code, 143);
  EXPECT_EQ(ended_by(SIGTERM).err, "fermata: ended by SIGTERM\n");
  EXPECT_EQ(ended_by(SIGINT).code, 130);
  EXPECT_EQ(ended_by(SIGUSR2).code, 1000 + SIGUSR2) << "no signal of ours";
}

TEST_F(ProgramTest, BenchSaysWhatItMeasuredOn) {
  const std::string json = program_.file("result.json");
  const test::Outcome outcome =
      program_.run({"bench", "core", "--engine", "fake", "--only", "prefill", "--prompt-max", "0", "--json", json});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string text = fermata::test::read_file(json);
  for (const char* word : {"\"machine\": {\"cpu\": ", "\"cores\": ", "\"build\": {\"version\": ", "\"rows\": ["})
    EXPECT_NE(text.find(word), std::string::npos) << text;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(program_
                .run({"bench", "core", "--engine", "fake", "--only", "prefill", "--prompt-max", "0", "--json",
                      program_.file("no/such/folder")})
                .code,
            1);
}

}  // namespace
}  // namespace fermata::cli
