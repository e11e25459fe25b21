#include "cli/config_flags.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "cli/flags.h"
#include "engine/llama/gguf_fixture.h"

namespace fermata::cli {
namespace {

class ConfigFlags : public testing::Test {
 protected:
  // What is said of a file with this text; empty if it is taken. `words`: the command line.
  std::string refusal(const std::string& text, const std::string& words = "serve") {
    const std::string path = folder_.file("f.toml");
    test::write_file(path, text);
    CLI::App app;
    CLI::App* serve = app.add_subcommand("serve");
    port_ = 8080;
    exact_ = true;
    hosts_.clear();
    add_number(*serve, "--port", port_, "");
    add_switch(*serve, "--exact", exact_, "");
    add_text(*serve, "-m,--model,--gguf", model_, "");
    serve->add_option("--allow-host", hosts_, "");
    serve->add_option("--engine", engine_, "")->check(CLI::IsMember({"llama", "fake"}));
    std::string config;
    add_text(*serve, "--config", config, "");
    app.parse(words);
    const Result<void> read = read_config(*serve, path);
    if (read) return "";
    const std::string& message = read.error().message;
    EXPECT_TRUE(message.starts_with(path + ":")) << message;
    return message.substr(std::min(message.size(), path.size() + 1));
  }
  const test::TempFolder folder_;
  std::uint16_t port_ = 0;
  bool exact_ = true;
  std::string model_, engine_;
  std::vector<std::string> hosts_;
};

TEST_F(ConfigFlags, AKeyIsAFlagAndWhatWasGivenWins) {
  EXPECT_EQ(refusal("port = 81\nexact = false\n[serve]\nallow-host = [\"a\", \"b\"]\nmodel = \"x\""), "");
  EXPECT_EQ(port_, 81);
  EXPECT_FALSE(exact_);
  EXPECT_EQ(hosts_, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(refusal("port = 81\nallow-host = \"c\"\nexact = \"off\"", "serve --port 82"), "");
  EXPECT_EQ(port_, 82);
  EXPECT_FALSE(exact_);
  EXPECT_EQ(hosts_, std::vector<std::string>{"c"});
  EXPECT_EQ(refusal("allow-host = []"), "");
}

TEST_F(ConfigFlags, AWrongTypeIsToldWithPlaceKeyAndWhatIsExpected) {
  EXPECT_EQ(refusal("# first\n port = \"x\""), "2:9: port: takes a whole number from 0 to 65535, not 'x'");
  EXPECT_EQ(refusal("port = 65536"), "1:8: port: takes a whole number from 0 to 65535, not '65536'");
  EXPECT_EQ(refusal("port = true"), "1:8: port: takes a whole number from 0 to 65535, not 'true'");
  EXPECT_EQ(refusal("port = [1]"), "1:8: port: takes one value, not an array");
  EXPECT_EQ(refusal("exact = 1"), "1:9: exact: takes on or off, not '1'");
  EXPECT_EQ(refusal("model = \"\""), "1:9: model: must not be empty");
  EXPECT_EQ(refusal("engine = \"fast\"").substr(0, 13), "1:10: engine:");
  EXPECT_NE(refusal("engine = \"fast\"").find("llama"), std::string::npos);
  EXPECT_EQ(refusal("port = \"x\"", "serve --port 82"), "") << "what does not count is not read";
}

TEST_F(ConfigFlags, AnUnknownKeyGetsTheNearestAsAHint) {
  EXPECT_EQ(refusal("prot = 1"), "1:1: there is no key 'prot'; did you mean 'port'?");
  EXPECT_EQ(refusal("\n allow_host = \"a\""), "2:2: there is no key 'allow_host'; did you mean 'allow-host'?");
  EXPECT_EQ(
      refusal("n-gpu-layers = 99"),
      "1:1: there is no key 'n-gpu-layers', which is llama.cpp's: leave it out: everything is computed on the CPU");
  EXPECT_EQ(refusal("zzzzzzzz = 1"), "1:1: there is no key 'zzzzzzzz'");
  EXPECT_EQ(refusal("config = \"x\""), "1:1: there is no key 'config'");
  EXPECT_EQ(refusal("[server]\nport = 1"), "2:1: there is no section 'server'; keys stand at the top, or in [serve]");
  EXPECT_EQ(refusal("port = 1\n[serve]\nport = 2"), "3:1: 'port' stands at the top and in a section");
  EXPECT_EQ(refusal("model = \"a\"\ngguf = \"b\""), "2:1: 'gguf' is another name of 'model', which stands above");
}

}  // namespace
}  // namespace fermata::cli
