#include "engine/sampling/grammar/grammar.h"

#include <gtest/gtest.h>

#include <string>

#include "base/limits.h"
#include "engine/sampling/grammar/utf8_ranges.h"

namespace fermata {
namespace {

std::optional<TokenId> no_token(std::string_view) { return std::nullopt; }

Result<std::shared_ptr<const Grammar>> parse(const std::string& text) { return Grammar::parse(text, no_token); }

TEST(GrammarText, WhatIsWellFormed) {
  for (const char* text : {
           "root ::= \"a\"",
           "root ::= a | b\na ::= \"x\"\nb ::= \"y\"  # a comment\n\n",
           "# only a comment first\nroot ::= [a-z]+ \" \" [^0-9\\]]*",
           "root ::=\n  \"a\" |\n  \"b\"\n",
           "root ::= (\"a\"\n | \"b\"\n)* \"\\x41\\u00e9\\U0001F600\\t\\n\\\\\\\"\"",
           "root ::= \"a\"{3} \"b\"{2,} \"c\"{0,4} \"d\"{ 1 , 2 }",
           "root ::= item*\nitem ::= \"(\" item* \")\"",
           "root ::= . | [-a] | [a-] | [\xC3\xA9-\xE6\xBC\xA2]",
           "root ::= <[5]> !<[6]> \"a\"",
           "root ::= | \"a\"",
           "root ::= \"\"",
           "root ::= a\r\na ::= \"x\"\r\n",
           "root ::= \"a\" root |",  // right recursion
           "root ::= (\"a\"?)* (\"\")* ((\"b\"*)*)*",
       }) {
    const auto grammar = parse(text);
    EXPECT_TRUE(grammar.has_value()) << text << "\n" << (grammar ? "" : grammar.error().message);
  }
}

struct Refused {
  const char* text;
  const char* message;
};

TEST(GrammarText, SaysWhereItIsWrong) {
  for (const auto& [text, message] : {
           Refused{"", "line 1, column 1: there is no rule named 'root'"},
           Refused{"a ::= \"x\"", "there is no rule named 'root'"},
           Refused{"root = \"a\"", "line 1, column 6: expected ::="},
           Refused{"root ::= \"a", "line 1, column 10: this string is not closed"},
           Refused{"root ::= [a", "line 1, column 10: this character class is not closed"},
           Refused{"root ::= [z-a]", "ends before it begins"},
           Refused{"root ::= []", "is empty"},
           Refused{"root ::= (\"a\"", "line 1, column 14: expected ')'"},
           Refused{"root ::= \"a\")", "line 1, column 13: expected a new line"},
           Refused{"root ::= *", "nothing stands before this repetition"},
           Refused{"root ::= \"a\"{2,1}", "least count"},
           Refused{"root ::= \"a\"{x}", "expected a number"},
           Refused{"root ::= \"a\"{1", "expected '}'"},
           Refused{"root ::= \"\\q\"", "unknown escape"},
           Refused{"root ::= \"\\x4\"", "hexadecimal"},
           Refused{"root ::= \"\\U00110000\"", "no such code point"},
           Refused{"root ::= \"\\ud800\"", "surrogate"},
           Refused{"root ::= \"\xC3\"", "not UTF-8"},
           Refused{"root ::= \"\xC0\x80\"", "not UTF-8"},
           Refused{"root ::= b\n\n", "line 1, column 10: rule 'b' is not defined"},
           Refused{"root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1: rule 'root' is defined twice"},
           Refused{"root ::= root \"a\"", "left-recursive"},
           Refused{"root ::= a\na ::= b\nb ::= a | \"x\"", "left-recursive"},
           Refused{"root ::= e root \"x\" | \"y\"\ne ::= f\nf ::= g\ng ::= |",
                   "left-recursive"},  // hidden behind empties
           Refused{"root ::= (root)?", "left-recursive"},
           Refused{"root ::= <none>", "is not one token"},
           Refused{"root ::= <[99999999999]>", "no such token"},
           Refused{"root ::= <[1>", "expected ']'"},
           Refused{"root ::= !\"a\"", "expected '<'"},
           Refused{"root ::= \"a\"**********", "more than 8 repetitions"},
           Refused{"root ::= \xFF", "expected a new line"},
       }) {
    const auto grammar = parse(text);
    ASSERT_FALSE(grammar.has_value()) << text;
    EXPECT_EQ(grammar.error().code, Code::kGrammar);
    EXPECT_NE(grammar.error().message.find(message), std::string::npos) << text << "\n" << grammar.error().message;
  }
}

TEST(GrammarText, RefusesNulInsteadOfEndingThere) {
  EXPECT_FALSE(parse(std::string("root ::= \"a\"\0 junk", 18)).has_value());
}

// Sizes at which other engines overflow their stack, run for ever, or fill the memory.
TEST(GrammarText, HostileSizesAreRefusedQuickly) {
  const std::string deep(100'000, '(');
  EXPECT_EQ(parse("root ::= " + deep).error().code, Code::kGrammar);
  EXPECT_EQ(parse("root ::= \"a\"{1000000}").error().code, Code::kTooLarge);
  EXPECT_EQ(parse("root ::= \"a\"{0,4294967295}").error().code, Code::kTooLarge);
  EXPECT_EQ(parse("root ::= ((((\"a\"{99}){99}){99}){99}){99}").error().code, Code::kTooLarge);
  EXPECT_EQ(parse("root ::= ((((\"\"{0,99}){99}){99}){99}){99}").error().code, Code::kTooLarge);
  EXPECT_EQ(parse("root ::= (" + std::string(60'000, '|') + "){100000}").error().code, Code::kTooLarge);
  std::string empties = "root ::= (";
  for (int i = 0; i < 50'000; ++i) empties += "()";
  EXPECT_EQ(parse(empties + "){0,100000}").error().code, Code::kTooLarge);
  EXPECT_EQ(parse(std::string(limits::kGrammarBytesMax + 1, ' ')).error().code, Code::kTooLarge);
  // 40 levels of two alternatives each: 2^40 paths for a search that forgets where it has been.
  std::string wide = "root ::= a0 | a0\n";
  for (int i = 0; i < 40; ++i) {
    const std::string next = "a" + std::to_string(i + 1);
    wide.append("a").append(std::to_string(i)).append(" ::= ").append(next).append(" | ").append(next).append("\n");
  }
  EXPECT_TRUE(parse(wide + "a40 ::= \"x\"").has_value());
  // A chain of 10,000 rules, for searches that recurse.
  std::string chain = "root ::= a0\n";
  for (int i = 0; i < 10'000; ++i) chain += "a" + std::to_string(i) + " ::= a" + std::to_string(i + 1) + "\n";
  EXPECT_TRUE(parse(chain + "a10000 ::= \"x\"").has_value());
  EXPECT_FALSE(parse(chain + "a10000 ::= a0").has_value());
}

std::string encode(std::uint32_t c) {
  std::string out;
  if (c < 0x80) return {static_cast<char>(c)};
  if (c < 0x800) return {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
  if (c < 0x10000) {
    return {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 63)),
            static_cast<char>(0x80 | (c & 63))};
  }
  return {static_cast<char>(0xF0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 63)),
          static_cast<char>(0x80 | (c >> 6 & 63)), static_cast<char>(0x80 | (c & 63))};
}

// Every code point, one way to match it or none.
TEST(Utf8Ranges, CoverExactlyTheirCodePoints) {
  const std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> cases = {
      {{0, 0x10FFFF}},
      {{0x7F, 0x80}},
      {{0x700, 0x900}},
      {{0xD000, 0xE001}},
      {{0xFFF0, 0x10010}},
      {{0x12345, 0x98765}},
      {{'a', 'z'}, {'m', 0xFF}, {0x10FFFF, 0x10FFFF}},
      {{0xD800, 0xDFFF}}};
  for (const auto& ranges : cases) {
    for (const bool negated : {false, true}) {
      const auto sequences = utf8_sequences(negated ? complement(ranges) : ranges);
      for (std::uint32_t c = 0; c <= 0x10FFFF; c += c < 0x3000 || (c > 0xCF00 && c < 0xE100) ? 1 : 13) {
        const std::string bytes = encode(c);
        int n_matches = 0;
        for (const auto& sequence : sequences) {
          bool match = sequence.size() == bytes.size();
          for (std::size_t i = 0; match && i < bytes.size(); ++i) {
            const auto byte = static_cast<std::uint8_t>(bytes[i]);
            match = byte >= sequence[i].first && byte <= sequence[i].second;
          }
          n_matches += match;
        }
        bool in = negated;
        for (const auto& [low, high] : ranges) in = (c >= low && c <= high) ? !negated : in;
        if (c >= 0xD800 && c <= 0xDFFF) in = false;
        ASSERT_EQ(n_matches, in ? 1 : 0) << std::hex << c;
      }
    }
  }
}

}  // namespace
}  // namespace fermata
