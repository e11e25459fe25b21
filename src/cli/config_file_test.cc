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
  EXPECT_TRUE(refusal("a = 1\n  b = maybe").starts_with("f.toml:2:7: 'maybe' wants quotes"))
      << refusal("a = 1\n  b = maybe");
  EXPECT_TRUE(refusal("a = \"\xC3\xA9\" x").starts_with("f.toml:1:9: nothing but a comment"));
  EXPECT_TRUE(refusal("\n= 3").starts_with("f.toml:2:1: here a key"));
  EXPECT_TRUE(refusal("a").starts_with("f.toml:1:2: behind a key"));
  EXPECT_TRUE(refusal("a =").starts_with("f.toml:1:4: here a value"));
  EXPECT_TRUE(refusal("a = \nb = 1").starts_with("f.toml:1:5: here a value"));
  EXPECT_TRUE(refusal("a = 1\nb = 2\na = 3").starts_with("f.toml:3:1: 'a' stands in line 1 already"));
  EXPECT_TRUE(refusal("a = \"x").starts_with("f.toml:1:5: this text has no closing"));
  EXPECT_TRUE(refusal("a = \"\"\"x\"\"\"").starts_with("f.toml:1:5: texts of several lines"));
  EXPECT_TRUE(refusal("a = \"x\\q\"").starts_with("f.toml:1:7: there is no such escape"));
  EXPECT_TRUE(refusal("a = [1, 2").starts_with("f.toml:1:5: this array has no end"));
  EXPECT_TRUE(refusal("a = [1 2]").starts_with("f.toml:1:8: values of an array"));
  EXPECT_TRUE(refusal("[x").starts_with("f.toml:1:3: the name of a section"));
  EXPECT_TRUE(refusal("[[x]]").starts_with("f.toml:1:1: there are no lists"));
  EXPECT_TRUE(refusal("a = 1 b = 2").starts_with("f.toml:1:7: nothing but"));
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
