#include "chat/commands.h"

#include <gtest/gtest.h>

namespace fermata::chat {
namespace {

using Kind = Line::Kind;

TEST(Commands, WhatALineIs) {
  struct Case {
    std::string sent;
    Kind kind;
    std::string text;
  };
  const std::vector<Case> cases = {
      {"hello /new", Kind::kQuestion, "hello /new"},
      {"//etc is a folder", Kind::kQuestion, "/etc is a folder"},
      {"/help", Kind::kHelp, ""},
      {"/new", Kind::kNew, ""},
      {"/system Be brief.", Kind::kSystem, "Be brief."},
      {"/system  two\nlines ", Kind::kSystem, "two\nlines"},
      {"/save  talk.json ", Kind::kSave, "talk.json"},
      {"/retry", Kind::kRetry, ""},
      {"/quit", Kind::kQuit, ""},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(line_of(one.sent).kind, one.kind) << one.sent;
    EXPECT_EQ(line_of(one.sent).text, one.text) << one.sent;
  }
}

TEST(Commands, UnknownOnesAreToldWithTheNearest) {
  for (const char* sent : {"/hlep", "/usr/bin", "/", "/save", "/newer"})
    EXPECT_EQ(line_of(sent).kind, Kind::kUnknown) << sent;
  EXPECT_NE(line_of("/hlep").text.find("'/help'"), std::string::npos) << line_of("/hlep").text;
  Dialogue dialogue;
  EXPECT_FALSE(carry_out(line_of("/hlep"), dialogue));
}

TEST(Commands, ChangeTheDialogue) {
  Dialogue dialogue("Be kind.");
  dialogue.add({"q", "a"});
  EXPECT_EQ(*carry_out(line_of("/system"), dialogue), "system: Be kind.\n");
  EXPECT_TRUE(carry_out(line_of("/system Be brief."), dialogue));
  EXPECT_TRUE(carry_out(line_of("/new"), dialogue));
  EXPECT_TRUE(dialogue.turns().empty());
  EXPECT_EQ(dialogue.system(), "Be brief.");
}

TEST(Dialogue, MessagesAsTheApiTakesThem) {
  Dialogue dialogue("s");
  dialogue.add({"q", "a", true});
  EXPECT_EQ(dialogue.messages("next", "begun"), (json::array{{{"role", "system"}, {"content", "s"}},
                                                             {{"role", "user"}, {"content", "q"}},
                                                             {{"role", "assistant"}, {"content", "a"}},
                                                             {{"role", "user"}, {"content", "next"}},
                                                             {{"role", "assistant"}, {"content", "begun"}}}));
}

TEST(Dialogue, ASentenceIsJoinedAsItWouldBeWritten) {
  EXPECT_EQ(joint_of("It is", "blue"), " blue");
  EXPECT_EQ(joint_of("It is ", "blue"), "blue");
  EXPECT_EQ(joint_of("It is", "\nblue"), "\nblue");
  EXPECT_EQ(joint_of("It is", ", blue"), ", blue");
  EXPECT_EQ(joint_of("", "blue"), "blue");
}

}  // namespace
}  // namespace fermata::chat
