#include "cli/foreign_flags.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <set>
#include <sstream>

#include "cli/commands.h"

namespace fermata::cli {
namespace {

std::vector<std::string> names_of(const ForeignFlag& foreign) {
  std::istringstream text{std::string(foreign.names)};
  std::vector<std::string> names;
  for (std::string name; text >> name;) names.push_back(name.substr(0, name.find(',')));
  return names;
}

bool is_ours(const CLI::App& command, const std::string& flag) {
  for (const CLI::Option* option : command.get_options())
    if (option->check_name(flag)) return true;
  return false;
}

TEST(ForeignFlags, NoneIsOursAndEachStandsOnceForACommand) {
  CLI::App app;
  (void)add_serve(app);
  (void)add_run(app);
  (void)add_chat(app);
  for (const char* command : {"serve", "run", "chat"}) {
    std::set<std::string> seen;
    for (const ForeignFlag& foreign : foreign_flags()) {
      EXPECT_FALSE(foreign.instead.empty());
      if (!foreign.command.empty() && foreign.command != command) continue;
      for (const std::string& name : names_of(foreign)) {
        EXPECT_TRUE(name.starts_with('-') && name.size() > 1) << name;
        EXPECT_TRUE(seen.insert(name).second) << command << " " << name;
        EXPECT_FALSE(is_ours(*app.get_subcommand(command), name)) << command << " " << name;
        EXPECT_EQ(instead_of(std::string("fermata ") + command, name), foreign.instead) << name;
      }
    }
  }
  EXPECT_EQ(instead_of("fermata serve", "--nobody-has-it"), "");
}

TEST(ForeignFlags, WhatAFlagTakesIsNoFlag) {
  CLI::App app;
  (void)add_run(app);
  const CLI::App& run = *app.get_subcommand("run");
  const auto among = [&](const std::vector<std::string>& words) {
    std::string said;
    for (const std::string& one : foreign_flags_among(words, run, "fermata run"))
      said += said.empty() ? one : "\n" + one;
    return said;
  };
  EXPECT_EQ(among({"run", "-b", "5"}),
            "'fermata run' has no flag '-b', which is llama.cpp's: " + std::string(instead_of("fermata run", "-b")));
  EXPECT_EQ(among({"run", "-b", "5", "--temp", "1", "-ngl=9", "-b", "6"}),
            among({"run", "-b"}) + "\n" + among({"run", "-ngl"}))
      << "all are told, and none twice";
  EXPECT_NE(among({"run", "--batch-size=5"}), "");
  EXPECT_NE(among({"run", "--stop=x", "-b"}), "");
  EXPECT_EQ(among({"run", "--stop", "-b", "hello"}), "");
  EXPECT_EQ(among({"run", "--", "-b"}), "");
  EXPECT_EQ(among({"run", "--top-k", "5", "-n", "5", "hello"}), "");
}

// The rows of the table in the documentation, in its order.
std::string row_of(const ForeignFlag& foreign) {
  std::string names;
  for (const std::string& name : names_of(foreign)) names += (names.empty() ? "`" : ", `") + name + "`";
  return "| " + names + " | " + std::string(foreign.command) + " | " + std::string(foreign.instead) + " |";
}

TEST(ForeignFlags, TheDocumentationHasTheSameTable) {
  std::ifstream file(FERMATA_ROOT "/docs/coming-from-llama-server.md");
  std::string line, stands, wanted;
  while (std::getline(file, line) && line != "<!-- table: foreign flags -->") {
  }
  while (std::getline(file, line) && line != "<!-- end -->")
    if (line.starts_with("| `")) stands += line + "\n";
  for (const ForeignFlag& foreign : foreign_flags()) wanted += row_of(foreign) + "\n";
  EXPECT_EQ(stands, wanted) << "what should stand there:\n" << wanted;
}

}  // namespace
}  // namespace fermata::cli
