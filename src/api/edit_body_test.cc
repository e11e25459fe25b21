#include "api/edit_body.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fermata::api {
namespace {

// A prompt of two tokens, then a token for each piece.
Journal journal_of(const std::vector<std::string>& pieces) {
  Journal journal;
  JournalRow row;
  journal.append(row, {});
  journal.append(row, {});
  row.role = TokenRole::kGenerated;
  for (const std::string& piece : pieces) journal.append(row, piece);
  return journal;
}

// Reads bytes as tokens, so that the text of a splice can be read off it.
class ByteVocabulary final : public Vocabulary {
 public:
  std::int32_t n_tokens() const override { return 256; }
  std::string_view bytes(TokenId) const override { return {}; }
  bool ends_generation(TokenId) const override { return false; }
  bool is_control(TokenId) const override { return false; }
  std::vector<TokenId> tokenize(std::string_view text, Markers) const override {
    std::vector<TokenId> tokens;
    for (const char byte : text) tokens.push_back(TokenId{static_cast<unsigned char>(byte)});
    return tokens;
  }
  std::vector<TokenId> prompt_prefix() const override { return {}; }
};

std::string text_of(const Splice& splice) {
  std::string text;
  for (const TokenId token : splice.tokens) text += static_cast<char>(raw(token));
  return text;
}

Place byte(std::int64_t at) { return {Place::Unit::kByte, at}; }
Place utf16(std::int64_t at) { return {Place::Unit::kUtf16, at}; }
Place token(std::int64_t at) { return {Place::Unit::kToken, at}; }

Splice splice_of(Edit edit, const Journal& journal) {
  const auto splices = splices_of({std::move(edit)}, journal, ByteVocabulary());
  EXPECT_TRUE(splices.has_value()) << (splices ? "" : splices.error().message);
  return splices ? splices->front() : Splice{};
}

TEST(EditPlaces, a_range_of_bytes_gives_way_with_what_its_tokens_have_beside_it) {
  const Journal journal = journal_of({"The ", "light", "house ", "stood"});
  const Splice splice = splice_of({byte(7), byte(12), "bulb", {}}, journal);
  EXPECT_EQ(splice.begin, 3);
  EXPECT_EQ(splice.end, 5);
  EXPECT_EQ(text_of(splice), "ligbulbse ");
}

TEST(EditPlaces, at_the_borders_of_tokens_nothing_else_gives_way) {
  const Journal journal = journal_of({"The ", "light", "house ", "stood"});
  Splice splice = splice_of({byte(4), byte(9), "dark", {}}, journal);
  EXPECT_EQ(splice.begin, 3);
  EXPECT_EQ(splice.end, 4);
  EXPECT_EQ(text_of(splice), "dark");
  splice = splice_of({byte(9), byte(9), "er", {}}, journal);
  EXPECT_EQ(splice.begin, 4);
  EXPECT_EQ(splice.end, 4);
  splice = splice_of({byte(20), byte(20), " on", {}}, journal);
  EXPECT_EQ(splice.begin, 6);
  EXPECT_EQ(splice.end, 6);
  splice = splice_of({byte(6), byte(6), "X", {}}, journal);
  EXPECT_EQ(text_of(splice), "liXght") << "within a token";
  EXPECT_EQ(splice.end, splice.begin + 1);
}

TEST(EditPlaces, without_an_end_it_goes_to_the_end_and_tokens_stand_between_what_is_cut) {
  const Journal journal = journal_of({"The ", "light"});
  Splice splice = splice_of({byte(6), std::nullopt, "", {}}, journal);
  EXPECT_EQ(splice.begin, 3);
  EXPECT_EQ(splice.end, 4);
  EXPECT_EQ(text_of(splice), "li");
  splice = splice_of({byte(6), byte(7), "", {TokenId{'x'}}}, journal);
  EXPECT_EQ(text_of(splice), "lixht");
  splice = splice_of({token(1), std::nullopt, "", {TokenId{'x'}}}, journal);
  EXPECT_EQ(splice.begin, 1);
  EXPECT_EQ(splice.end, 4);
  EXPECT_EQ(splice.role, TokenRole::kPrompt);
}

TEST(EditPlaces, utf16_units_are_counted_as_javascript_does) {
  const Journal journal = journal_of({"a\xF0\x9F\x98\x80", "\xC3\xA9", "\xFF", "b"});  // a, 2 units, é, U+FFFD, b
  EXPECT_EQ(*token_at(utf16(3), journal), 3);
  EXPECT_EQ(*token_at(utf16(4), journal), 4);
  EXPECT_EQ(*token_at(utf16(5), journal), 5);
  EXPECT_EQ(*token_at(utf16(6), journal), 6);
  const auto beyond = token_at(utf16(7), journal);
  ASSERT_FALSE(beyond.has_value());
  EXPECT_NE(beyond.error().message.find("only 6 UTF-16 units"), std::string::npos) << beyond.error().message;
}

TEST(EditPlaces, what_is_not_there_or_backwards_is_said) {
  const Journal journal = journal_of({"ab"});
  for (const Edit& edit : {Edit{byte(3), std::nullopt, "x", {}}, Edit{token(4), std::nullopt, "x", {}},
                           Edit{byte(2), byte(1), "x", {}}, Edit{byte(1), byte(9), "x", {}}}) {
    const auto splices = splices_of({edit}, journal, ByteVocabulary());
    ASSERT_FALSE(splices.has_value());
    EXPECT_EQ(splices.error().code, Code::kInvalidArgument);
    EXPECT_EQ(splices.error().field, "edits");
  }
}

}  // namespace
}  // namespace fermata::api
