#include "engine/sampling/grammar/matcher.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "base/limits.h"
#include "engine/sampling/toy_vocabulary.h"

namespace fermata {
namespace {

struct World {
  ToyVocabulary vocabulary;
  std::shared_ptr<const TokenIndex> tokens = std::make_shared<TokenIndex>(vocabulary);

  Matcher matcher(const std::string& text) const {
    auto grammar = Grammar::parse(text, [&](std::string_view name) -> std::optional<TokenId> {
      const auto ids = vocabulary.tokenize(name, Markers::kParse);
      if (ids.size() == 1) return ids[0];
      return std::nullopt;
    });
    if (!grammar) ADD_FAILURE() << grammar.error().message;
    return Matcher(*grammar, tokens);
  }
};

const World& world() {
  static const World shared;
  return shared;
}

bool reads(Matcher matcher, const std::string& text) {
  for (const char c : text) {
    if (!matcher.advance(TokenId{static_cast<std::uint8_t>(c)})) return false;
  }
  return matcher.complete();
}

bool bit(std::span<const std::uint64_t> mask, std::int32_t i) {
  return mask[static_cast<std::size_t>(i) >> 6] >> (i & 63) & 1;
}

const char* const kJson = R"(root ::= value
value ::= object | array | string | number | "true" | "null"
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= "-"? ([0-9] | [1-9] [0-9]{0,15}) ("." [0-9]+)? ws
ws ::= | " " | "\n" [ \t]{0,20})";

TEST(Matcher, ReadsWhatTheGrammarSays) {
  const Matcher json = world().matcher(kJson);
  for (const char* text :
       {"{}", "[1,2,[3]]", "{\"a\": {\"b\":[true,null]}}", "\"\xC3\xA9\xE6\xBC\xA2\"", "12.5", "\"\\u00e9\""}) {
    EXPECT_TRUE(reads(json, text)) << text;
  }
  for (const char* text : {"{", "{]", "[1,]", "\"\n\"", "\"\xC3\"", "\"\xFF\"", "tru", "truee", "01"}) {
    EXPECT_FALSE(reads(json, text)) << text;
  }
  const Matcher counted = world().matcher("root ::= \"a\"{2,4} (\"b\" | \"c\"){2} \"d\"{1,}");
  EXPECT_TRUE(reads(counted, "aabcd") && reads(counted, "aaaacbddd"));
  EXPECT_FALSE(reads(counted, "abcd") || reads(counted, "aaaaabcd") || reads(counted, "aabd") ||
               reads(counted, "aabc"));
  const Matcher nested = world().matcher("root ::= \"(\" root \")\" | \"x\"");
  EXPECT_TRUE(reads(nested, "((((x))))"));
  EXPECT_FALSE(reads(nested, "(((x))))") || reads(nested, "((x)"));
}

TEST(Matcher, AllowsTheEndOnlyOfAWholeText) {
  Matcher matcher = world().matcher("root ::= \"ab\"");
  EXPECT_FALSE(matcher.allows(ToyVocabulary::kEnd));
  EXPECT_FALSE(matcher.advance(ToyVocabulary::kEnd));
  ASSERT_TRUE(matcher.advance(TokenId{'a'}));
  ASSERT_TRUE(matcher.advance(TokenId{'b'}));
  const auto mask = matcher.allowed();
  for (std::int32_t i = 0; i < world().vocabulary.n_tokens(); ++i) {
    EXPECT_EQ(bit(mask, i), world().vocabulary.ends_generation(TokenId{i})) << i;
  }
  EXPECT_TRUE(matcher.advance(ToyVocabulary::kEnd));
  EXPECT_TRUE(matcher.complete());
}

TEST(Matcher, ReadsWholeTokensByIdOnlyAtTheirBegin) {
  const Matcher control = world().matcher("root ::= \"a\" <control> \"b\"");
  Matcher matcher = control;
  EXPECT_FALSE(matcher.allows(ToyVocabulary::kControl));
  ASSERT_TRUE(matcher.advance(TokenId{'a'}));
  EXPECT_FALSE(matcher.allows(TokenId{'b'}));
  EXPECT_TRUE(bit(matcher.allowed(), raw(ToyVocabulary::kControl)));
  ASSERT_TRUE(matcher.advance(ToyVocabulary::kControl));
  EXPECT_TRUE(matcher.advance(TokenId{'b'}) && matcher.complete());

  // "ab" as one token is not an 'a' followed by some other token than x.
  Matcher other = world().matcher("root ::= \"a\" !<[120]>");
  for (const TokenIndex::Entry& entry : world().tokens->sorted()) {
    EXPECT_EQ(other.allows(entry.token), entry.bytes == "a") << entry.bytes;
  }
  ASSERT_TRUE(other.advance(TokenId{'a'}));
  EXPECT_FALSE(other.allows(TokenId{120}));
  EXPECT_TRUE(other.allows(TokenId{'a'}));
  EXPECT_FALSE(other.allows(ToyVocabulary::kControl));  // has no bytes
}

// The mask, allows() and advance() are three ways to ask the same; memory and copies never show.
TEST(Matcher, MaskAllowsAndAdvanceAgree) {
  std::mt19937 random(5);
  const char* const grammars[] = {
      kJson,
      "root ::= (\"a\" | \"ab\" | \"b\")* \"c\"",
      "root ::= [^a]{3,40} | \"a\" . . \"b\"",
      "root ::= x\nx ::= \"(\" x \")\" x |",
      "root ::= ((\"a\"? \"b\"?)* \"1\")+",
      "root ::= (\"a\" | <[98]> | !<[97]> \"c\")*",
      "root ::= [\xC3\xA9\xE6\xBC\xA2]*",
      "root ::= s s s\ns ::= \"a\" s \"b\" | \"a\" s \"c\" | \"x\"",
  };
  for (const char* text : grammars) {
    for (int round = 0; round < 8; ++round) {
      Matcher matcher = world().matcher(text);
      for (int step = 0; step < 25; ++step) {
        const std::vector<std::uint64_t> mask(matcher.allowed().begin(), matcher.allowed().end());
        std::vector<TokenId> fitting;
        for (std::int32_t i = 0; i < world().vocabulary.n_tokens(); ++i) {
          ASSERT_EQ(bit(mask, i), matcher.allows(TokenId{i})) << text << " token " << i;
          if (bit(mask, i)) fitting.push_back(TokenId{i});
        }
        const TokenId wrong{static_cast<std::int32_t>(random() % static_cast<unsigned>(world().vocabulary.n_tokens()))};
        if (!bit(mask, raw(wrong))) {
          ASSERT_FALSE(matcher.advance(wrong));
          ASSERT_TRUE(std::equal(mask.begin(), mask.end(), matcher.allowed().begin())) << "a refusal changed the state";
        }
        if (fitting.empty()) break;
        const TokenId next = fitting[random() % fitting.size()];
        Matcher copy = matcher;
        ASSERT_TRUE(matcher.advance(next));
        ASSERT_TRUE(copy.advance(next));
        ASSERT_TRUE(std::equal(copy.allowed().begin(), copy.allowed().end(), matcher.allowed().begin()));
      }
    }
  }
}

TEST(Matcher, AmbiguityAndDepthEndInARefusal) {
  // After n letters there are 2^n stacks.
  Matcher ambiguous = world().matcher("root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"x\"");
  int n = 0;
  while (ambiguous.advance(TokenId{'a'})) ASSERT_LT(++n, 100);
  EXPECT_GE(n, 8);
  EXPECT_FALSE(ambiguous.allows(TokenId{'a'}));
  EXPECT_TRUE(ambiguous.allows(TokenId{'x'}));
  Matcher deep = world().matcher("root ::= \"(\" root \")\" | \"x\"");
  n = 0;
  while (deep.advance(TokenId{'('})) ASSERT_LE(++n, static_cast<int>(limits::kGrammarDepthMax) + 1);
  EXPECT_GE(n, 1000);
  EXPECT_TRUE(deep.advance(TokenId{'x'}));
  for (int i = 0; i < n; ++i) ASSERT_TRUE(deep.advance(TokenId{')'}));
  EXPECT_TRUE(deep.complete());
  // Too many ways from the first byte on.
  EXPECT_TRUE(world().matcher("root ::= .?{2000}").dead());
}

// Long texts fill the memory several times over; what is forgotten is worked out again.
TEST(Matcher, ForgettingDoesNotShow) {
  Matcher matcher = world().matcher("root ::= [ab]{0,9000} \"c\"");
  for (int i = 0; i < 9000; ++i) {
    ASSERT_TRUE(matcher.advance(TokenId{i % 3 ? 'a' : 'b'}));
    if (i % 500 == 0) {
      ASSERT_TRUE(bit(matcher.allowed(), 'c') && !bit(matcher.allowed(), 'd'));
    }
  }
  EXPECT_FALSE(matcher.allows(TokenId{'a'}));
  EXPECT_TRUE(matcher.advance(TokenId{'c'}) && matcher.complete());
}

}  // namespace
}  // namespace fermata
