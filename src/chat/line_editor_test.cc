#include "chat/line_editor.h"

#include <gtest/gtest.h>

#include <random>

#include "base/limits.h"
#include "base/utf8.h"

namespace fermata::chat {
namespace {

using Kind = Key::Kind;
using Did = LineEditor::Did;

// Keys as a terminal sends them.
Did type(LineEditor& editor, const std::string& bytes) {
  KeyDecoder decoder;
  std::vector<Key> keys;
  decoder.add(bytes, {0}, keys);
  if (const auto deadline = decoder.deadline()) decoder.expire(*deadline, keys);
  Did did = Did::kNothing;
  for (const Key& key : keys) did = editor.take(key);
  return did;
}

// The text with "|" where the cursor is.
std::string after(const std::string& bytes) {
  LineEditor editor;
  type(editor, bytes);
  return std::string(editor.text()).insert(editor.cursor(), "|");
}

const std::string kLeft = "\x1b[D", kRight = "\x1b[C", kUp = "\x1b[A", kDown = "\x1b[B", kHome = "\x1b[H";

TEST(LineEditor, Edits) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"abc", "abc|"},
      {"abc" + kLeft + "x", "abx|c"},
      {"ab" + kLeft + kLeft + kLeft + "x", "x|ab"},
      {"ab" + kRight + "x", "abx|"},
      {"日本\x7f", "日|"},
      {"e\u0301\x7f", "|"},
      {"\U0001F469\u200D\U0001F680\x7f", "|"},
      {"日本" + kLeft + "\x1b[3~", "日|"},
      {"abc\x01x\x05y",
       "x"
       "abcy|"},
      {"one two\x17", "one |"},
      {"one two \x17", "one |"},
      {"one two" + kHome + "\x0b", "|"},
      {"one two\x15", "|"},
      {"one two\x1b"
       "b\x15",
       "|two"},
      {"one two\x1b"
       "b\x1b"
       "bx",
       "x|one two"},
      {"one two" + kHome +
           "\x1b"
           "fx",
       "onex| two"},
      {"one two" + kHome +
           "\x1b"
           "d",
       "| two"},
      {"a.b\x1b\x7f", "a.|"},
      {"one two\x17\x01\x19", "two|one "},
      {"a\x1b[1;5Db", "b|a"},
      {"one\x1b\rtwo", "one\ntwo|"},
      {"one\\\rtwo", "one\ntwo|"},
      {"one\x1b\rtwo" + kUp + "x", "onex|\ntwo"},
      {"one\x1b\rt" + kUp + "x", "ox|ne\nt"},
      {"日\x1b\rab" + kUp + "x", "日x|\nab"},
      {"日\x1b\ra" + kUp + "x", "x|日\na"},
      {"one\x1b\rtwo" + kUp + kDown + "x", "one\ntwox|"},
      {"one\x1b\rtwo" + kHome + "\x15x", "one\nx|two"},
      {"one\x1b\rtwo" + kUp + "\x05\x0b", "one|two"},
      {"\x1b[200~a\nb\x1b[201~c", "a\nbc|"},
      {"a\x04", "a|"},
      {"a\x01\x04", "|"},
  };
  for (const auto& [bytes, wanted] : cases) EXPECT_EQ(after(bytes), wanted) << testing::PrintToString(bytes);
}

TEST(LineEditor, EnterSendsAndAPasteDoesNot) {
  LineEditor editor;
  EXPECT_EQ(type(editor, "\x1b[200~one\ntwo\n\x1b[201~"), Did::kEdited);
  EXPECT_EQ(editor.text(), "one\ntwo\n");
  EXPECT_EQ(type(editor, "\r"), Did::kSent);
  EXPECT_EQ(editor.text(), "one\ntwo\n");
  EXPECT_EQ(type(editor, "\x1b"), Did::kNothing);
}

TEST(LineEditor, WhatIsTooLongIsNotPutIn) {
  LineEditor editor;
  editor.set("begun");
  EXPECT_EQ(editor.take({Key::Kind::kPaste, std::string(limits::kInputBytesMax - 4, 'x')}), Did::kTooLong);
  EXPECT_EQ(editor.text(), "begun");
  EXPECT_EQ(editor.take({Key::Kind::kPaste, std::string(limits::kInputBytesMax - 5, 'x')}), Did::kEdited);
  EXPECT_EQ(editor.take({Key::Kind::kText, "y"}), Did::kTooLong);
}

TEST(LineEditor, HistoryKeepsTheDraft) {
  const std::vector<std::string> history = {"first", "two\nlines"};
  LineEditor editor(&history);
  type(editor, "draft" + kUp);
  EXPECT_EQ(editor.text(), "two\nlines");
  type(editor, kUp);  // within it
  type(editor, kUp);
  EXPECT_EQ(editor.text(), "first");
  type(editor, kUp);
  EXPECT_EQ(editor.text(), "first");
  type(editor, kDown);
  EXPECT_EQ(editor.text(), "two\nlines");
  type(editor, kDown);
  EXPECT_EQ(editor.text(), "draft");
  type(editor, kDown);
  EXPECT_EQ(editor.text(), "draft");
  type(editor, kUp + "!");  // an entry that is edited is a draft of its own; the history is what it was
  EXPECT_EQ(editor.text(), "two\nlines!");
  EXPECT_EQ(history[1], "two\nlines");
}

// Whatever is pressed: the text is UTF-8 and the cursor stands between characters of it.
TEST(LineEditor, RandomKeysKeepItWhole) {
  std::mt19937 chance(7);
  const std::vector<std::string> history = {"日本\nx", "e\u0301"};
  const std::vector<std::string> bytes = {"a",
                                          "日",
                                          "\u0301",
                                          "\U0001F600",
                                          "\u200D",
                                          " ",
                                          "\x1b\r",
                                          kLeft,
                                          kRight,
                                          kUp,
                                          kDown,
                                          kHome,
                                          "\x05",
                                          "\x7f",
                                          "\x17",
                                          "\x0b",
                                          "\x15",
                                          "\x19",
                                          "\x04",
                                          "\033d",
                                          "\033b",
                                          "\033f",
                                          "\x1b[200~x\n日\x1b[201~"};
  LineEditor editor(&history);
  for (int i = 0; i < 20'000; ++i) {
    type(editor, bytes[chance() % bytes.size()]);
    if (editor.text().size() > 200) editor.set({});
    ASSERT_TRUE(is_utf8(editor.text()));
    ASSERT_LE(editor.cursor(), editor.text().size());
    ASSERT_TRUE(is_utf8(std::string_view(editor.text()).substr(editor.cursor())));
  }
}

}  // namespace
}  // namespace fermata::chat
