#include "engine/llama/sampling/json_schema.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/llama/sampling/schema_check.h"
#include "engine/sampling/grammar/grammar.h"

namespace fermata {
namespace {

TEST(JsonSchema, MakesGrammarsThatCompile) {
  for (
      const char* schema : {
          "{}",
          R"({"type":"object"})",
          R"({"type":["string","null"]})",
          R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"number"}}})",
          R"({"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"}}}}})",
          R"({"anyOf":[{"const":1},{"enum":["x",2]},{"type":"string","format":"uuid"}]})",
          R"({"allOf":[{"$ref":"#/$defs/a"},{"properties":{"y":{}}}],"$defs":{"a":{"properties":{"x":{}}}}})",
          R"({"type":"string","pattern":"^[a-c]{2,3}(x|\\.y)+[A-Z0-9 -]$"})",
          R"({"type":"integer","minimum":-12,"maximum":3456})",
          R"({"type":"array","prefixItems":[{"type":"string"},{"type":"boolean"}]})",
      }) {
    const auto grammar = json_schema_grammar(schema);
    ASSERT_TRUE(grammar.has_value()) << schema << "\n" << grammar.error().message;
    const auto compiled = Grammar::parse(*grammar, {});
    EXPECT_TRUE(compiled.has_value()) << schema << "\n" << *grammar << (compiled ? "" : compiled.error().message);
  }
}

struct Refused {
  std::string schema;
  const char* message;
};

std::string repeated(const std::string& text, int n) {
  std::string out;
  for (int i = 0; i < n; ++i) out += text;
  return out;
}

// What makes the conversion run for ever, overflow its stack, or accept anything in silence.
TEST(JsonSchema, RefusesWhatItCannotKeep) {
  std::string doubling = "{\"$ref\":\"#/$defs/a0\",\"$defs\":{";
  std::string chain = doubling, many = "{\"type\":\"object\",\"properties\":{";
  for (int i = 0; i < 200; ++i) {
    const std::string name = "\"a" + std::to_string(i) + "\":",
                      next = "{\"$ref\":\"#/$defs/a" + std::to_string(i + 1) + "\"}";
    doubling.append(name).append("{\"allOf\":[{\"properties\":{\"x\":{\"allOf\":[");
    doubling.append(next).append(",").append(next).append("]}}}]},");
    many += name + "{},";
  }
  for (int i = 0; i < 3000; ++i) {
    chain += "\"a" + std::to_string(i) + "\":{\"type\":\"object\",\"properties\":{\"x\":{\"$ref\":\"#/$defs/a" +
             std::to_string(i + 1) + "\"}}},";
  }
  doubling += "\"a200\":{}}}";
  chain += "\"a3000\":{}}}";
  many += "\"z\":{}}}";
  const Refused cases[] = {
      {"", "json_schema is no JSON: "},
      {"{\"type\":\"integer\",\"multipleOf\":3}", "multipleOf cannot be enforced"},
      {"{\"items\":{\"not\":{}}}", "not cannot be enforced"},
      {"{\"type\":\"number\",\"minimum\":5}", "for integers only"},
      {"{\"pattern\":\"^.{3}$\"}", ". allows quotes"},
      {"{\"pattern\":\"^[^a]$\"}", "[^ allows quotes"},
      {"{\"pattern\":\"^[ -~]$\"}", "holds a quote"},
      {"{\"pattern\":\"^\\\"$\"}", "cannot stand in a JSON string"},
      {"{\"pattern\":\"^\\\\n$\"}", "cannot stand in a JSON string"},
      {"{\"pattern\":\"^\\\\x22$\"}", "cannot stand in a JSON string"},
      {"{\"pattern\":\"^\\\\\\\\$\"}", "cannot stand in a JSON string"},
      {"{\"pattern\":\"^" + repeated("(", 33) + "a" + repeated(")", 33) + "$\"}", "nest deeper than 32"},
      {"{", "json_schema is no JSON: "},
      {"[]", "must be an object"},
      {"{\"type\":\"thing\"}", "unrecognized type"},
      {"{\"type\":\"string\",\"minLength\":-1}", "minLength"},
      {repeated("{\"items\":", 65) + "{}" + repeated("}", 65), "nests deeper than 64"},
      {repeated("[", 200'000), "nests deeper than 64"},
      {"{\"$ref\":\"#/$defs/none\"}", "leads nowhere"},
      {"{\"$ref\":\"http://example.com/x\"}", "path within the schema"},
      {"{\"allOf\":[{\"$ref\":\"#/$defs/a\"}],\"$defs\":{\"a\":{\"$ref\":\"#/$defs/b\"},\"b\":{\"$ref\":\"#/$defs/"
       "a\"}}}",
       "leads to itself"},
      {repeated("{\"type\":[\"array\",\"array\",\"array\"],\"items\":", 30) + "{}" + repeated("}", 30), "too large"},
      {doubling, "too large"},
      {chain, "too large"},
      {many, "201 properties; the limit is 128"},
      {"{\"properties\":{\"" + std::string(300, '!') + "\":{}}}", "name has 300 bytes"},
      {"{\"pattern\":\"[a-z]+\"}", "begin with ^"},
      {"{\"pattern\":\"^\\\\d+$\"}", "\\d is not supported"},
      {"{\"pattern\":\"^(?=a)b$\"}", "lookaround"},
      {"{\"pattern\":\"^a$b$\"}", "only at its ends"},
      {"{\"pattern\":\"^(a$\"}", "unbalanced"},
      {"{\"description\":\"" + std::string(300'000, 'x') + "\"}", "the limit is 262144"},
  };
  for (const auto& [schema, message] : cases) {
    const auto grammar = json_schema_grammar(schema);
    ASSERT_FALSE(grammar.has_value()) << schema.substr(0, 200);
    EXPECT_EQ(grammar.error().field, "json_schema");
    EXPECT_EQ(grammar.error().message.find('\n'), std::string::npos) << "one sentence: " << grammar.error().message;
    EXPECT_EQ(grammar.error().detail.substr(0, 11) == "json_schema" || grammar.error().code == Code::kTooLarge, true);
    EXPECT_NE(grammar.error().message.find(message), std::string::npos) << schema.substr(0, 200) << "\n"
                                                                        << grammar.error().message;
  }
}

}  // namespace
}  // namespace fermata
