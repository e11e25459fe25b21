#include "engine/llama/json_text.h"

#include <gtest/gtest.h>

namespace fermata {
namespace {

TEST(JsonText, EscapesWhatJsonCannotHold) {
  EXPECT_EQ(json_string("A \"fast\"\tCPU\\\x7f"), R"("A \"fast\"\u0009CPU\\\u007f")");
  EXPECT_EQ(json_string(""), "\"\"");
  EXPECT_EQ(json_string(std::string_view("\0", 1)), R"("\u0000")");
}

TEST(JsonText, KeepsEveryWellFormedCharacter) {
  for (const char* text : {"\u00e9", "\u0800", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff", "語"})
    EXPECT_EQ(json_string(text), '"' + std::string(text) + '"');
}

TEST(JsonText, ReplacesWhatIsNoUtf8) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(json_string("a\xFF"
                        "b"),
            "\"a" + bad + "b\"");
  EXPECT_EQ(json_string("\xC3"), '"' + bad + '"');  // cut off
  EXPECT_EQ(json_string("\xE2\x82"
                        "x"),
            '"' + bad + bad + "x\"");                                             // the third byte is missing
  EXPECT_EQ(json_string("\xC0\xAF"), '"' + bad + bad + '"');                      // overlong
  EXPECT_EQ(json_string("\xED\xA0\x80"), '"' + bad + bad + bad + '"');            // a surrogate
  EXPECT_EQ(json_string("\xF4\x90\x80\x80"), '"' + bad + bad + bad + bad + '"');  // beyond the last
}

TEST(JsonText, LetsNoEscapeCodeReachATerminal) {
  EXPECT_EQ(printable("\x1b[31mred\x07\nline"), " [31mred  line");
  EXPECT_EQ(printable("\u009b31mred\u0080\u00a0"), " 31mred \u00a0") << "what ESC [ is to some terminals";
  EXPECT_EQ(printable("caf\u00e9 \xFE"), "caf\u00e9 \xEF\xBF\xBD");
  EXPECT_EQ(printable_lines("a\x1b[2J\tb\r\n\u009b\u202E"), "a [2J\tb \n \u202E");
  EXPECT_EQ(printable("a\u202Eb\u2069c\u202F\u2065"), "a b c\u202F\u2065") << "what would turn the rest of the line";
}

}  // namespace
}  // namespace fermata
