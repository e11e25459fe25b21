#include "cli/config_file.h"

#include <gtest/gtest.h>

namespace fermata::cli {
namespace {

using Strings = std::vector<std::string>;

std::string refusal(std::string_view text) {
  const auto items = parse_config(text, "f.toml");
  return items ? "" : items.error().message;
}

TEST(ConfigFile, ReadsWhatFlagsNeed) {
  const auto items = parse_config(
      "\xEF\xBB\xBF# ours\r\nport = 8_081  # here\r\n"
      "host='C:\\x'\nname = \"a\\tb \\\"c\\\" \\u00e9 # no comment\"\n"
      "\"exact\" = true\nlist = [ \"a\",\n  # between\n  'b', 3,\n]\nempty = []\n[serve]\ndrain=+1.5\nserve.x = -2",
      "f.toml");
  ASSERT_TRUE(items) << items.error().message;
  ASSERT_EQ(items->size(), 8u);
  const auto& all = *items;
  EXPECT_EQ(all[0].key, Strings{"port"});
  EXPECT_EQ(all[0].values, Strings{"8081"});
  EXPECT_EQ(all[0].value_at.line, 2u);
  EXPECT_EQ(all[0].value_at.column, 8u);
  EXPECT_EQ(all[1].values, Strings{"C:\\x"});
  EXPECT_EQ(all[2].values, Strings{"a\tb \"c\" \xC3\xA9 # no comment"});
  EXPECT_TRUE(all[3].is_truth);
  EXPECT_EQ(all[4].values, (Strings{"a", "b", "3"}));
  EXPECT_TRUE(all[4].is_array);
  EXPECT_TRUE(all[5].values.empty());
  EXPECT_EQ(all[6].key, (Strings{"serve", "drain"}));
  EXPECT_EQ(all[6].values, Strings{"1.5"});
  EXPECT_EQ(all[7].key, (Strings{"serve", "serve", "x"}));
  EXPECT_EQ(parse_config("", "f.toml")->size(), 0u);
}

TEST(ConfigFile, WhatIsWrongIsToldWithItsPlace) {
  const std::pair<const char*, const char*> cases[] = {{"a = 1\n  b = maybe", "2:7"},
                                                       {"a = \"\xC3\xA9\" x", "1:9"},
                                                       {"\n= 3", "2:1"},
                                                       {"a", "1:2"},
                                                       {"a = \nb = 1", "1:5"},
                                                       {"a = 1\nb = 2\na = 3", "3:5"},
                                                       {"a = \"x", "1:7"},
                                                       {"a = \"x\\q\"", "1:8"},
                                                       {"a = [1, 2", "1:10"},
                                                       {"a = [1 2]", "1:8"},
                                                       {"[x", "1:3"},
                                                       {"[[x]]\na = 1", "1:1"},
                                                       {"a = 1 b = 2", "1:7"},
                                                       {"a = 1979-05-27", "1:5"},
                                                       {"a = [[1]]", "1:6"},
                                                       {"a = {b = 1979-05-27}", "1:10"}};
  for (const auto& [text, place] : cases) {
    const std::string said = refusal(text);
    EXPECT_TRUE(said.starts_with("f.toml:" + std::string(place) + ": ") && said.size() > 20) << text << ": " << said;
  }
  EXPECT_NE(refusal("a = 1979-05-27").find("'a' takes a \"text\", a number"), std::string::npos);
}

TEST(ConfigFile, AKeyOfManyPartsIsRefusedBeforeItTakesTime) {
  std::string parts = "a";
  for (int i = 0; i < 5000; ++i) parts += ".a";
  for (const std::string& text : {parts + " = 1", "[" + parts + "]", "x = {" + parts + " = 1}", "\n" + parts})
    EXPECT_NE(refusal(text).find("a key has too many parts"), std::string::npos) << text.substr(0, 10);
  EXPECT_EQ(refusal(parts + " = 1").substr(0, 13), "f.toml:1:18: ");
  EXPECT_EQ(refusal("\nx = {" + parts + " = 1}").substr(0, 13), "f.toml:2:23: ");
  const auto around = [&parts](const char* before, const char* after) { return before + parts + after; };
  for (const std::string& text :
       {around("# ", ""), around("x = '", "' # a.a"), around("x = \"\\\"", "\""), around("x = \"\"\"\n", "\n\"\"\""),
        std::string("x = [1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5]"), std::string("a.b.c.d.e.f.g.h.i = 1")})
    EXPECT_EQ(refusal(text), "") << text.substr(0, 10);
}

TEST(ConfigFile, NoInputIsReadBeyondItsEnd) {
  const std::string whole = "[serve]\na = [\"x\\u00e9\", 'y', 1]\nb = \"z\\\\\"\n";
  for (std::size_t n = 0; n <= whole.size(); ++n) {
    const std::string part = whole.substr(0, n);  // a copy: a sanitizer sees its end
    (void)parse_config(part, "f.toml");
  }
  for (const char* text : {"a = \"\\", "a = \"\\u12", "a = \"\\uD800\"", "\"", "'", "[", "a.", "a = ["})
    EXPECT_NE(refusal(text), "") << text;
}

}  // namespace
}  // namespace fermata::cli
