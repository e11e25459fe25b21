#include "cli/config_example.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <sstream>

#include "cli/commands.h"
#include "cli/config_flags.h"
#include "engine/llama/gguf_fixture.h"

namespace fermata::cli {
namespace {

struct Serve {
  CLI::App& command() { return *app.get_subcommand("serve"); }
  CLI::App app{"", "fermata"};
  Command keeps_the_settings = add_serve(app);
};

std::string example_of_serve() {
  Serve serve;
  return config_example(describe(serve.command()));
}

// Without the first # of each line.
std::string in_use(const std::string& example) {
  std::istringstream lines(example);
  std::string text;
  for (std::string line; std::getline(lines, line);) text += (line.starts_with('#') ? line.substr(1) : line) + "\n";
  return text;
}

TEST(ConfigExample, AsItIsPrintedItSaysNothing) {
  std::istringstream lines(example_of_serve());
  for (std::string line; std::getline(lines, line);) EXPECT_TRUE(line.empty() || line.starts_with('#')) << line;
}

TEST(ConfigExample, WithEveryLineInUseItGivesTheDefaults) {
  const test::TempFolder folder;
  test::write_file(folder.file("f.toml"), in_use(example_of_serve()));
  Serve serve;
  const Result<void> read = read_config(serve.command(), folder.file("f.toml"));
  ASSERT_TRUE(read) << read.error().message;
  std::size_t n_given = 0;
  for (const CLI::Option* option : std::as_const(serve.command()).get_options()) {
    const std::string text = option->get_default_str();
    EXPECT_EQ(option->count(), text.empty() ? 0u : 1u) << option->get_name();
    if (option->count() == 0) continue;
    EXPECT_EQ(option->results(), std::vector<std::string>{text}) << option->get_name();
    ++n_given;
  }
  EXPECT_GE(n_given, 10u);
}

TEST(ConfigExample, EveryFlagIsThereWithItsHelp) {
  const std::string example = example_of_serve();
  Serve serve;
  for (const CLI::Option* option : std::as_const(serve.command()).get_options()) {
    const std::string name = option->get_lnames().front();
    const bool is_key = name != "help" && name != "config";
    EXPECT_EQ(example.find(name + " = ") != std::string::npos, is_key) << name;
    EXPECT_EQ(example.find("## " + option->get_description()) != std::string::npos, is_key) << name;
  }
}

}  // namespace
}  // namespace fermata::cli
