#include "engine/fake/fake_vocabulary.h"

#include <gtest/gtest.h>

#include <random>

namespace fermata {
namespace {

std::string text_of(const FakeVocabulary& vocabulary, const std::vector<TokenId>& tokens) {
  std::string text;
  for (const TokenId token : tokens) text += vocabulary.bytes(token);
  return text;
}

TEST(FakeVocabulary, TokensOfAnyBytesGiveThoseBytesBack) {
  const FakeVocabulary vocabulary;
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::string text;
    for (auto n = random() % 30; n > 0; --n) text += static_cast<char>(random() % 256);
    text += "Paris 你好，世界。😀👍🏽 é ```<|end|>";
    EXPECT_EQ(text_of(vocabulary, vocabulary.tokenize(text, Markers::kPlain)), text);
  }
}

TEST(FakeVocabulary, CharactersMayBeSplitOverTokens) {
  const FakeVocabulary vocabulary;
  EXPECT_EQ(vocabulary.tokenize("你", Markers::kPlain).size(), 1u);
  EXPECT_EQ(vocabulary.tokenize("佢", Markers::kPlain).size(), 2u);  // \xe4\xbd is a piece, \xa2 a byte
  EXPECT_EQ(vocabulary.tokenize("😃", Markers::kPlain).size(), 2u);
  EXPECT_EQ(vocabulary.tokenize("ü", Markers::kPlain).size(), 2u);
}

TEST(FakeVocabulary, MarkersAreControlTokensOnlyWhereTheyAreParsed) {
  const FakeVocabulary vocabulary;
  const auto parsed = vocabulary.tokenize("<|user|>a<|end|>", Markers::kParse);
  EXPECT_EQ(parsed, (std::vector{vocabulary.user(), vocabulary.byte('a'), vocabulary.end()}));
  for (const TokenId token : vocabulary.tokenize("<|user|>", Markers::kPlain))
    EXPECT_FALSE(vocabulary.is_control(token));
  EXPECT_TRUE(vocabulary.is_control(vocabulary.begin()));
  EXPECT_TRUE(vocabulary.bytes(vocabulary.answer()).empty());
  EXPECT_TRUE(vocabulary.ends_generation(vocabulary.end()));
  EXPECT_FALSE(vocabulary.ends_generation(vocabulary.answer()));
}

}  // namespace
}  // namespace fermata
