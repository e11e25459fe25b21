#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "base/check.h"
#include "engine/llama/gguf_fixture.h"

extern char** environ;

// For tests: the built program, started as a user would and looked at from outside.
namespace fermata::cli::test {

struct Outcome {
  int code = -1;  // of the exit; 1000 + signal if one killed it
  std::string out;
  std::string err;
};

class Program {
 public:
  Program() { set("XDG_CACHE_HOME", folder_.file("cache")); }

  std::string file(const std::string& name) const { return folder_.file(name); }
  const std::string& folder() const { return folder_.path(); }
  // For all later runs.
  void set(const std::string& name, const std::string& value) { environment_.push_back(name + "=" + value); }
  void stdin_from(const std::string& text) { fermata::test::write_file(file("in"), text); }

  // Another file of the program, for all later runs: it looks for its model from where it lies.
  void be(const std::string& path) { path_ = path; }

  // Address space, for all later runs.
  void limit_memory(std::size_t n_mib) { n_mib_max_ = n_mib; }

  // Called once the program runs; `input` is the writing end of its standard input.
  using Meanwhile = std::function<void(pid_t child, int input)>;

  // `out`: where standard output goes instead.
  Outcome run(std::vector<std::string> words, std::string out = {}, const Meanwhile& meanwhile = {}) {
    const bool keeps_out = out.empty();
    if (keeps_out) out = file("out");
    int input[2] = {open("/dev/null", O_RDONLY | O_CLOEXEC), -1};
    if (access(file("in").c_str(), F_OK) == 0) {
      close(input[0]);
      input[0] = open(file("in").c_str(), O_RDONLY | O_CLOEXEC);
    } else if (meanwhile) {
      close(input[0]);
      FERMATA_CHECK_EQ(pipe2(input, O_CLOEXEC), 0);
    }
    words.insert(words.begin(), path_);
    if (n_mib_max_ != 0) {
      const std::string script = "ulimit -v " + std::to_string(n_mib_max_ << 10) + "; exec \"$@\"";
      words.insert(words.begin(), {"/bin/sh", "-c", script, "sh"});
    }
    const pid_t child = start(words, input[0], out);
    close(input[0]);
    if (meanwhile) meanwhile(child, input[1]);
    int status = 0;
    FERMATA_CHECK_EQ(waitpid(child, &status, 0), child);
    if (input[1] >= 0) close(input[1]);  // not before: the program might finish instead
    return {WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status),
            keeps_out ? fermata::test::read_file(out) : "", fermata::test::read_file(file("err"))};
  }

 private:
  pid_t start(std::vector<std::string>& words, int input, const std::string& out) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, 0);
    posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, file("err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    std::vector<char*> variables;
    for (std::string& variable : environment_) variables.push_back(variable.data());
    for (char** variable = environ; *variable != nullptr; ++variable)
      if (std::string_view(*variable).substr(0, 8) != "FERMATA_") variables.push_back(*variable);
    variables.push_back(nullptr);
    pid_t child = 0;
    FERMATA_CHECK_EQ(posix_spawn(&child, words[0].c_str(), &actions, nullptr, arguments.data(), variables.data()), 0);
    posix_spawn_file_actions_destroy(&actions);
    return child;
  }

  fermata::test::TempFolder folder_;
  std::string path_ = FERMATA_PROGRAM;
  std::size_t n_mib_max_ = 0;             // 0: no limit
  std::vector<std::string> environment_;  // before the inherited ones: the first of a name counts
};

inline std::size_t n_lines(const std::string& text) {
  std::size_t n = 0;
  for (const char c : text) n += c == '\n';
  return n;
}

}  // namespace fermata::cli::test
