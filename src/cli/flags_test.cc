#include "cli/flags.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "cli/sampling_flags.h"
#include "engine/llama/gguf_fixture.h"

namespace fermata::cli {
namespace {

TEST(ParseNumber, TakesWholeNumbersWhole) {
  EXPECT_EQ(parse_number<std::int32_t>("-12"), -12);
  EXPECT_EQ(parse_number<std::uint64_t>("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(parse_number<std::int32_t>("010"), 10) << "no octal";
  for (const char* text : {"", " 1", "1 ", "1.5", "0x10", "one", "1e3", "+-1", "-", "2147483648"})
    EXPECT_FALSE(parse_number<std::int32_t>(text)) << text;
  for (const char* text : {"-1", "18446744073709551616", "99999999999999999999999"})
    EXPECT_FALSE(parse_number<std::uint64_t>(text)) << text;
}

TEST(ParseNumber, TakesFiniteNumbersOnly) {
  EXPECT_EQ(parse_number<float>("-2.5"), -2.5f);
  EXPECT_EQ(parse_number<double>("1e3"), 1000.0);
  for (const char* text : {"nan", "inf", "-inf", "1e400", "1.5x", "1,5", ""}) EXPECT_FALSE(parse_number<float>(text));
}

class Flags : public testing::Test {
 protected:
  // What is said of this command line; empty if it is taken.
  std::string refusal(std::vector<std::string> words) {
    std::reverse(words.begin(), words.end());  // CLI11 takes them from the end
    CLI::App app;
    SamplingParams params;
    SamplingFlags sampling;
    sampling.add_to(app, params);
    std::int32_t rows = 3;
    std::string model;
    bool exact = true;
    std::string prompt;
    app.add_option("prompt", prompt);
    add_number(app, "-r,--rows", rows, "", {1, 9});
    add_text(app, "-m,--model", model, "");
    add_switch(app, "--exact", exact, "");
    try {
      app.parse(words);
    } catch (const CLI::ParseError& error) {
      return error.what();
    }
    taken_ = params;
    return {};
  }
  SamplingParams taken_;
};

TEST_F(Flags, EveryNumberIsTakenWholeOrRefusedByName) {
  const char* const whole[] = {"--seed",
                               "--top-k",
                               "--min-keep",
                               "--mirostat",
                               "--repeat-last-n",
                               "--dry-allowed-length",
                               "--dry-penalty-last-n"};
  const char* const broken[] = {"--temp",
                                "--top-p",
                                "--min-p",
                                "--typical",
                                "--top-n-sigma",
                                "--dynatemp-range",
                                "--dynatemp-exp",
                                "--xtc-probability",
                                "--xtc-threshold",
                                "--mirostat-ent",
                                "--mirostat-lr",
                                "--adaptive-target",
                                "--adaptive-decay",
                                "--repeat-penalty",
                                "--frequency-penalty",
                                "--presence-penalty",
                                "--dry-multiplier",
                                "--dry-base"};
  for (const char* flag : whole)
    for (const char* value : {"1x", "1.5", "99999999999999999999", "0x1", ""})
      EXPECT_TRUE(refusal({flag, value}).starts_with(std::string(flag) + ": takes a whole number")) << flag << value;
  for (const char* flag : broken)
    for (const char* value : {"1x", "nan", "inf", "1e400", "0.1.2", ""})
      EXPECT_TRUE(refusal({flag, value}).starts_with(std::string(flag) + ": takes a number")) << flag << value;
  EXPECT_EQ(refusal({"--seed", "18446744073709551615", "--temp", "-0.5", "--repeat-last-n", "-1"}), "");
  EXPECT_EQ(taken_.seed, UINT64_MAX);
  EXPECT_EQ(taken_.repeat_last_n, -1);
}

TEST_F(Flags, SaysTheBoundsAndTheValue) {
  EXPECT_EQ(refusal({"--rows", "10"}), "--rows: takes a whole number from 1 to 9, not '10'");
  EXPECT_EQ(refusal({"-r", "9"}), "");
}

TEST_F(Flags, ALogitBiasIsReadToItsEnd) {
  for (const char* text : {"1.5=2", "1=2x", "1=", "=2", "1", "1=nan", "1=inf", "1 =2", "1=2=3", "99999999999=1"})
    EXPECT_TRUE(refusal({"--logit-bias", text}).starts_with("--logit-bias: '" + std::string(text))) << text;
  EXPECT_EQ(refusal({"--logit-bias", "7=-2.5", "--logit-bias", "8=-inf"}), "");
  ASSERT_EQ(taken_.logit_bias.size(), 2u);
  EXPECT_EQ(taken_.logit_bias[0].bias, -2.5f);
  EXPECT_EQ(raw(taken_.logit_bias[1].token), 8);
}

TEST_F(Flags, OneThatMayBeRepeatedLeavesThePromptAlone) {
  EXPECT_EQ(refusal({"--logit-bias", "7=1", "--dry-sequence-breaker", ";", "--dry-sequence-breaker", "!", "hello"}),
            "");
  EXPECT_EQ(taken_.logit_bias.size(), 1u);
  EXPECT_EQ(taken_.dry_sequence_breakers, (std::vector<std::string>{";", "!"}));
}

TEST_F(Flags, WhatIsEmptyIsRefused) {
  const test::TempFolder folder;
  test::write_file(folder.file("empty"), "");
  test::write_file(folder.file("blank"), " \n\t");
  for (const char* flag : {"--grammar-file", "--json-schema-file"})
    for (const char* name : {"empty", "blank", "absent"})
      EXPECT_TRUE(refusal({flag, folder.file(name)}).starts_with(flag + (": " + folder.file(name)))) << name;
  for (const char* flag : {"--grammar", "--json-schema", "--model"})
    EXPECT_EQ(refusal({flag, ""}), std::string(flag) + ": must not be empty");
}

TEST_F(Flags, ASwitchIsOnOrOff) {
  EXPECT_EQ(refusal({"--exact", "off"}), "");
  EXPECT_EQ(refusal({"--exact", "7"}), "--exact: takes on or off, not '7'");
}

TEST(WhyNoName, TakesWhatPeopleCallAModel) {
  for (const char* name : {"gpt-4o", "org/model:7b", "modèle 你好", "\xC3\x9B"})
    EXPECT_EQ(why_no_name(name), "") << name;
  for (const char* name : {"", "a\tb", "\x7f", "\xC2\x80", "\xC3", "\xED\xA0\x80"})
    EXPECT_NE(why_no_name(name), "") << name;
}

}  // namespace
}  // namespace fermata::cli
