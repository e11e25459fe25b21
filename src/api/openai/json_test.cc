#include "api/openai/json.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>

#include "base/limits.h"

namespace fermata::api {
namespace {

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(ParseJson, TakesEveryKindOfValue) {
  const auto value = parse_json(R"( {"a": [1, -2, 3.5, 18446744073709551615, true, null, "é\u00e9😀"]} )");
  ASSERT_TRUE(value) << value.error().message;
  EXPECT_EQ(to_text(*value), R"({"a":[1,-2,3.5,18446744073709551615,true,null,"éé😀"]})");
}

TEST(ParseJson, RefusesWhatTwoReadersWouldReadDifferently) {
  const std::string_view bad[] = {
      "",
      " ",
      "{",
      "{}}",
      "{} {}",
      "[1,]",
      "{\"a\":1,}",
      "nul",
      "01",
      "NaN",
      "Infinity",
      "1e999",
      "'a'",
      "// c\n1",
      "{\"a\":1,\"a\":1}",
      "{\"x\":{\"b\":1,\"c\":2,\"b\":1}}",
      "{\"a\":1,\"\\u0061\":2}",
      "\"\xFF\"",
      "\"\xC3\"",
      "{\"\xED\xA0\x80\":1}",
      "\"\\ud800\"",
      "\"a\nb\"",
      "\xEF\xBB\xBF{}",
  };
  for (const std::string_view text : bad) {
    const auto value = parse_json(text);
    ASSERT_FALSE(value) << text;
    EXPECT_EQ(value.error().code, Code::kInvalidArgument) << text;
    EXPECT_EQ(value.error().field, kWholeBody);
    EXPECT_NE(value.error().detail.find("at byte "), std::string::npos) << text;
  }
}

TEST(ParseJson, KeysMayBeEqualInDifferentObjects) {
  EXPECT_TRUE(parse_json(R"({"a":{"a":1},"b":{"a":1},"c":[{"a":1},{"a":2}]})"));
}

TEST(ParseJson, NamesTheRepeatedKey) {
  const auto value = parse_json(R"({"stop":1,"x":{"stop":2},"stop":3})");
  ASSERT_FALSE(value);
  EXPECT_NE(value.error().message.find("\"stop\" twice"), std::string::npos) << value.error().message;
}

TEST(ParseJson, DepthIsBounded) {
  EXPECT_TRUE(parse_json(nested(limits::kJsonDepthMax)));
  const auto deep = parse_json(nested(limits::kJsonDepthMax + 1));
  ASSERT_FALSE(deep);
  EXPECT_NE(deep.error().message.find("deeper than 64"), std::string::npos) << deep.error().message;
  EXPECT_FALSE(parse_json(nested(1'000'000)));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_FALSE(parse_json(objects));
}

TEST(ParseJson, SizeAndCountAreBounded) {
  const auto large = parse_json(std::string(limits::kJsonBytesMax + 1, ' '));
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, Code::kTooLarge);
  std::string many = "[0";
  for (std::size_t i = 0; i < limits::kJsonValuesMax; ++i) many += ",0";
  const auto crowded = parse_json(many + "]");
  ASSERT_FALSE(crowded);
  EXPECT_EQ(crowded.error().code, Code::kTooLarge);
}

TEST(ToText, WritesNumbersAsPeopleDo) {
  EXPECT_EQ(to_text(json::array{0.7, -0.125, 1.0, 1e300, 0.0, -0.0}), "[0.7,-0.125,1,1e+300,0,0]");
  EXPECT_EQ(to_text(std::numeric_limits<double>::infinity()), "null");
}

TEST(ParseJson, ReadsDoublesExactly) {
  for (const std::string_view text :
       {"0.1", "0.3", "5.9604644775390625e-08", "1.7976931348623157e+308", "2.2250738585072014e-308",
        "9007199254740993.5", "123456.789e-12", "0.1000000000000000055511151231257827", "1e-400", "-1e-7"})
    EXPECT_EQ(parse_json("[" + std::string(text) + "]")->at(0).get_double(), std::strtod(text.data(), nullptr)) << text;
}

TEST(ParseObject, TakesNothingElseAndSaysWhatItIs) {
  EXPECT_EQ(parse_object(R"({"a":1})")->at("a"), 1);
  for (const std::string_view text : {"[]", "5", "null", "\"x\"", "{", ""}) {
    const auto refused = parse_object(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, Code::kInvalidArgument) << text;
    EXPECT_EQ(refused.error().field, kWholeBody) << text;
  }
  EXPECT_NE(parse_object("[]").error().message.find("it is an array"), std::string::npos);
}

TEST(ToText, EscapesWhatJsonForbidsAndNothingElse) {
  std::string out;
  append_quoted(out, std::string_view("\"\\\n\r\t\0\x1f/é\x7f", 11));
  EXPECT_EQ(out, "\"\\\"\\\\\\n\\r\\t\\u0000\\u001f/é\x7f\"");
  const auto back = parse_json(out);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->get_string(), json::string_view("\"\\\n\r\t\0\x1f/é\x7f", 11));
}

class Reading : public testing::Test {
 protected:
  FieldReader reader(std::string_view text, std::string path = "") {
    object_ = parse_json(text)->get_object();
    return {object_, std::move(path), complaints_};
  }
  std::string complaint() const { return complaints_.any() ? complaints_.first().message : ""; }

  json::object object_;
  Complaints complaints_;
};

TEST_F(Reading, NullReadsAsAbsent) {
  auto fields = reader(R"({"a":null,"b":null})");
  EXPECT_FALSE(fields.integer("a", 0, 9));
  EXPECT_FALSE(fields.string("b", 9));
  fields.refuse_unread();
  EXPECT_EQ(complaint(), "");
}

TEST_F(Reading, AWholeDoubleIsAnInteger) {
  auto fields = reader(R"({"a":5.0,"b":1e9,"c":-1})");
  EXPECT_EQ(fields.integer("a", 0, 9), 5);
  EXPECT_EQ(fields.integer("b", 0, 2'000'000'000), 1'000'000'000);
  EXPECT_EQ(fields.integer("c", -1, 0), -1);
  EXPECT_EQ(complaint(), "");
}

TEST_F(Reading, SaysWhatAFieldMustBeAndWhatItIs) {
  const struct {
    std::string_view value, complaint;
  } cases[] = {
      {R"("5")", R"(m.n must be an integer between 0 and 9; it is the string "5")"},
      {"5.5", "m.n must be an integer between 0 and 9; it is 5.5"},
      {"10", "m.n must be an integer between 0 and 9; it is 10"},
      {"1e30", "m.n must be an integer between 0 and 9; it is 1e+30"},
      {"18446744073709551615", "m.n must be an integer between 0 and 9; it is 18446744073709551615"},
      {"true", "m.n must be an integer between 0 and 9; it is true"},
      {"[5]", "m.n must be an integer between 0 and 9; it is an array"},
      {"{}", "m.n must be an integer between 0 and 9; it is an object"},
  };
  for (const auto& [value, expected] : cases) {
    complaints_ = {};
    auto fields = reader("{\"n\":" + std::string(value) + "}", "m");
    EXPECT_FALSE(fields.integer("n", 0, 9));
    EXPECT_EQ(complaint(), expected);
    EXPECT_EQ(complaints_.first().field, "m.n");
  }
}

TEST_F(Reading, OnlyTheFirstComplaintCounts) {
  auto fields = reader(R"({"a":1,"b":2})");
  EXPECT_FALSE(fields.boolean("a"));
  EXPECT_FALSE(fields.string("b", 9));
  EXPECT_EQ(complaints_.first().field, "a");
}

TEST_F(Reading, AnUnknownFieldGetsTheNearestAsAHint) {
  static constexpr std::string_view kKnown[] = {"temperature", "top_p", "max_tokens"};
  reader(R"({"temperatur":1})").refuse_unknown(kKnown);
  EXPECT_EQ(complaint(), "there is no field temperatur; did you mean temperature?");
  complaints_ = {};
  reader(R"({"quux_wibble":1})").refuse_unknown(kKnown);
  EXPECT_EQ(complaint(), "there is no field quux_wibble; leave it out");
  complaints_ = {};
  reader(R"({"":1})").refuse_unknown(kKnown);
  EXPECT_EQ(complaints_.first().field, "\"\"") << "a refusal always names a field";
  complaints_ = {};
}

TEST_F(Reading, WhatNobodyAskedForIsUnknownAndWhatWasAskedForIsTheHint) {
  auto fields = reader(R"({"top_q":1,"seed":2})");
  EXPECT_EQ(fields.integer("seed", 0, 9), 2);
  EXPECT_FALSE(fields.number("top_p", 0, 1)) << "absent, but asked for";
  fields.refuse_unread();
  EXPECT_EQ(complaint(), "there is no field top_q; did you mean top_p?");
}

TEST_F(Reading, QuotesLittleOfALongValueAndCutsNoCharacter) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "é";
  auto fields = reader("{\"n\":\"x" + text + "\"}");
  EXPECT_FALSE(fields.boolean("n"));
  EXPECT_LT(complaint().size(), 120u);
  EXPECT_TRUE(parse_json("\"" + std::string(in_words(object_["n"])).substr(12)));
}

}  // namespace
}  // namespace fermata::api
