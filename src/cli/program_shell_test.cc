// What `fermata` prints for shells and for man, as they take it.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "cli/program_fixture.h"

namespace fermata::cli {
namespace {

using Words = std::vector<std::string>;

class ProgramShellTest : public testing::Test {
 protected:
  // "/bin/bash" of "bash"; empty where there is none.
  std::string path_of(const std::string& command) {
    test::Program shell;
    shell.be("/bin/sh");
    const std::string out = shell.run({"-c", "command -v " + command}).out;
    return out.substr(0, out.find('\n'));
  }
  test::Outcome bash(const std::string& script, const Words& words = {}) {
    test::Program shell;
    shell.be(path_of("bash"));
    Words all = {"-c", script, FERMATA_PROGRAM};
    all.insert(all.end(), words.begin(), words.end());
    return shell.run(all);
  }
  // What bash offers when the last of these words is being written.
  Words completed(const Words& words) {
    const test::Outcome outcome = bash(
        "source <(\"$0\" completion bash); COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1))\n"
        "[[ $(complete -p fermata) == 'complete -F _fermata fermata' ]] || exit 9\n"
        "_fermata; printf '%s\\n' \"${COMPREPLY[@]}\"",
        words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    Words found;
    std::istringstream lines(outcome.out);
    for (std::string line; std::getline(lines, line);)
      if (!line.empty()) found.push_back(line);
    std::sort(found.begin(), found.end());
    return found;
  }
  test::Program program_;
};

TEST_F(ProgramShellTest, BashCompletesCommands) {
  EXPECT_EQ(completed({"fermata", "ser"}), Words{"serve"});
  EXPECT_EQ(completed({"fermata", "bench", ""}), Words{"core"});
  EXPECT_EQ(completed({"fermata", "completion", ""}), (Words{"bash", "fish", "zsh"}));
  const Words all = completed({"fermata", ""});
  for (const char* command : {"run", "serve", "doctor", "man"})
    EXPECT_NE(std::find(all.begin(), all.end(), command), all.end()) << command;
  EXPECT_EQ(completed({"fermata", "run", ""}), Words{}) << "a prompt is not known beforehand";
}

TEST_F(ProgramShellTest, BashCompletesFlagsAndWhatTheyTake) {
  EXPECT_EQ(completed({"fermata", "serve", "--log-"}), (Words{"--log-format", "--log-level"}));
  EXPECT_EQ(completed({"fermata", "bench", "core", "--prefill-r"}), Words{"--prefill-rows"});
  EXPECT_EQ(completed({"fermata", "serve", "--log-format", ""}), (Words{"json", "text"}));
  EXPECT_EQ(completed({"fermata", "serve", "--log-format", "=", "j"}), Words{"json"});
  EXPECT_EQ(completed({"fermata", "serve", "--log-format", "="}), (Words{"json", "text"}));
  EXPECT_EQ(completed({"fermata", "serve", "--exact", "o"}), (Words{"off", "on"}));
  EXPECT_EQ(completed({"fermata", "run", "--engine", "f"}), Words{"fake"});
  EXPECT_EQ(completed({"fermata", "serve", "--port", ""}), Words{}) << "no flag stands where a number is wanted";
  program_.stdin_from("");
  const std::string path = program_.file("in");
  EXPECT_EQ(completed({"fermata", "run", "-m", path.substr(0, path.size() - 1)}), Words{path});
  EXPECT_EQ(completed({"fermata", "prepare-model", path.substr(0, path.size() - 1)}), Words{path});
}

TEST_F(ProgramShellTest, ScriptsOfShellsThatAreHereAreTaken) {
  EXPECT_EQ(bash("bash -n <(\"$0\" completion bash)").err, "");
  if (!path_of("zsh").empty()) {
    EXPECT_EQ(bash("zsh -n <(\"$0\" completion zsh)").err, "");
  }
  if (!path_of("fish").empty()) {
    const test::Outcome offered = bash(
        "\"$0\" completion fish > \"$1\"\n"
        "fish --no-config -c \"source $1; complete -C 'fermata serve --log-format '\" | cut -f1",
        {program_.file("f.fish")});
    EXPECT_EQ(offered.err, "");
    EXPECT_EQ(offered.out, "json\ntext\n");
  }
  const std::string zsh = program_.run({"completion", "zsh"}).out;
  EXPECT_TRUE(zsh.starts_with("#compdef fermata\n")) << zsh;
  EXPECT_NE(zsh.find("'(--log-format)--log-format=["), std::string::npos) << zsh;
  EXPECT_NE(zsh.find(":json|text:(json text)'"), std::string::npos) << zsh;
  const std::string fish = program_.run({"completion", "fish"}).out;
  EXPECT_NE(fish.find("-n '__fish_seen_subcommand_from serve' -l log-format -x -a 'json text' -d "), std::string::npos)
      << fish;
  EXPECT_EQ(program_.run({"completion", "tcsh"}).code, 2);
  EXPECT_EQ(program_.run({"completion"}).code, 2);
}

TEST_F(ProgramShellTest, TheManualPageIsTakenWithoutAWarning) {
  const test::Outcome page = program_.run({"man"});
  EXPECT_EQ(page.code, 0);
  EXPECT_TRUE(page.out.starts_with(".TH FERMATA 1 ")) << page.out;
  EXPECT_EQ(std::count_if(page.out.begin(), page.out.end(), [](char c) { return static_cast<signed char>(c) < 0; }), 0);
  for (const char* said : {"\\fB\\-\\-port\\fR", "FERMATA_PORT", ".SS fermata bench core", "141"})
    EXPECT_NE(page.out.find(said), std::string::npos) << said;
  if (!path_of("groff").empty()) {
    const test::Outcome shown = bash("\"$0\" man | groff -man -ww -b -Tascii -P-cbou");
    EXPECT_EQ(shown.err, "");
    EXPECT_NE(shown.out.find("--log-level debug|error"), std::string::npos) << shown.out;
  }
  if (!path_of("mandoc").empty()) {
    EXPECT_EQ(bash("\"$0\" man | mandoc -T lint -W warning 2>&1 | grep -v 'missing date'").out, "");
  }
}

TEST_F(ProgramShellTest, TheExampleOfAConfigFileIsThatOfServe) {
  const test::Outcome example = program_.run({"config", "--example"});
  EXPECT_EQ(example.code, 0);
  EXPECT_NE(example.out.find("\n#port = 8080\n"), std::string::npos) << example.out;
  EXPECT_NE(example.out.find("\n## allow-host = [\"NAME\"]\n"), std::string::npos) << example.out;
  EXPECT_EQ(program_.run({"config"}).code, 2);
  EXPECT_NE(program_.run({"serve", "--help"}).out.find("fermata config --example"), std::string::npos);
}

TEST_F(ProgramShellTest, AReaderThatIsGoneIsTheBrokenPipeThatHelpSpeaksOf) {
  // No end of the pipe can be read when it is written.
  const test::Outcome ended =
      bash("mkfifo \"$1\"; exec 3<>\"$1\" 4>\"$1\" 3<&-; \"$0\" run --engine fake -n 5 hello >&4; echo $?",
           {program_.file("pipe")});
  EXPECT_EQ(ended.out, "141\n") << ended.err;
  EXPECT_NE(program_.run({"--help"}).out.find("141"), std::string::npos);
}

}  // namespace
}  // namespace fermata::cli
