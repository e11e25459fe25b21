#include "engine/llama/chat/template_check.h"

#include <gtest/gtest.h>

namespace fermata {
namespace {

std::string times(std::size_t n, const std::string& text) {
  std::string all;
  for (std::size_t i = 0; i < n; ++i) all += text;
  return all;
}

std::string refusal(const std::string& source) {
  const auto checked = check_template_nesting(source);
  return checked ? "" : checked.error().detail;
}

TEST(TemplateCheck, TakesWhatTemplatesAreMadeOf) {
  EXPECT_EQ(refusal(""), "");
  EXPECT_EQ(refusal("{"), "");
  EXPECT_EQ(refusal("{{"), "");
  EXPECT_EQ(
      refusal("{% for m in messages %}{% if m['role'] == 'user' %}{{ {'a': {'b': [1, (2)]}} }}{% endif %}{% endfor %}"),
      "");
  EXPECT_EQ(refusal(times(1000, "{% if x %}{% elif y %}{% else %}{% endif %}{%- set a = 1 %}")), "");
  EXPECT_EQ(refusal("{{ '" + times(10'000, "({[") + "\\' }}' }}"), "") << "a long string";
  EXPECT_EQ(refusal("{# " + times(10'000, "({[{% if %}") + " #}"), "") << "a long comment";
  EXPECT_EQ(refusal(times(10'000, "( { [ ")), "") << "text that is just said";
}

TEST(TemplateCheck, RefusesWhatWouldRecurseWithoutEnd) {
  EXPECT_NE(refusal("{{ " + times(65, "(") + "1" + times(65, ")") + " }}").find("brackets"), std::string::npos);
  EXPECT_EQ(refusal("{{ " + times(64, "[") + "1" + times(64, "]") + " }}"), "");
  EXPECT_NE(refusal("{{ 1" + times(5000, "+1") + " }}").find("code"), std::string::npos);
  EXPECT_NE(refusal("{{ " + times(5000, "not ")).find("code"), std::string::npos) << "and no end of the tag";
  for (const char* block : {"{% if 1 %}", "{%- for x in y -%}", "{%+ macro f() %}", "{%\nif 1 %}"})
    EXPECT_NE(refusal(times(201, block)).find("blocks"), std::string::npos) << block;
  EXPECT_NE(refusal("{% if 1 %}" + times(200, "{% elif 1 %}")).find("blocks"), std::string::npos);
  EXPECT_NE(refusal(std::string(kTemplateBytesMax + 1, 'x')).find("bytes"), std::string::npos);
}

}  // namespace
}  // namespace fermata
