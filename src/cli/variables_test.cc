#include "cli/variables.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace fermata::cli {
namespace {

class Variables : public testing::Test {
 protected:
  Variables() {
    app_.add_option("-p,--port");
    app_.add_option("--log-format");
    name_variables(app_);
  }
  std::vector<std::string> strange(std::vector<const char*> environment) const {
    environment.push_back(nullptr);
    return strange_variables(app_, environment.data());
  }
  CLI::App app_;
};

TEST_F(Variables, EveryFlagIsOne) {
  EXPECT_EQ(app_.get_option("--log-format")->get_envname(), "FERMATA_LOG_FORMAT");
  EXPECT_EQ(app_.get_option("--help")->get_envname(), "");
}

TEST_F(Variables, WhatStandsForNothingIsToldWithTheNearest) {
  EXPECT_EQ(strange({"FERMATA_PROT=80", "PATH=/bin", "FERMATA_ZZZZZZZZZZ"}),
            (std::vector<std::string>{
                "the variable FERMATA_PROT counts for nothing: no flag has this name; did you mean 'FERMATA_PORT'?",
                "the variable FERMATA_ZZZZZZZZZZ counts for nothing: no flag has this name"}));
}

TEST_F(Variables, WhatIsOfAnotherIsNot) {
  EXPECT_TRUE(strange({"FERMATA_PORT=80", "FERMATA_LOG_FORMAT=", "FERMATA_API_KEY=x", "FERMATA_URL=x", "FERMATA_JOBS=2",
                       "FERMATA_TEST_MODEL=x", "FERMATA_AMX=0", "OTHER_FERMATA_X=1", "FERMATA"})
                  .empty());
}

}  // namespace
}  // namespace fermata::cli
