#include "base/utf8.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "generation/text_stream_reference.h"

namespace fermata {
namespace {

std::string decode(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const Utf8Unit unit = utf8_unit(bytes);
    if (unit.kind == Utf8Unit::Kind::kCharacter)
      text += bytes.substr(0, unit.n_bytes);
    else
      text += kReplacementCharacter;
    bytes.remove_prefix(unit.n_bytes);
  }
  return text;
}

// `?` stands for U+FFFD. What other decoders of this rule make of these bytes (written down from CPython's).
TEST(Utf8Test, OneReplacementForEachMaximalIllFormedPart) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"\x80", "?"},                 // continuation alone
      {"\xBF\x80", "??"},            //
      {"\xC0\xAF", "??"},            // never a lead
      {"\xC1\xBFx", "??x"},          //
      {"\xF5\x80\x80\x80", "????"},  //
      {"\xFF\xFE", "??"},            //
      {"\xE0\x80\x80", "???"},       // overlong
      {"\xE0\x9F\xBF", "???"},       //
      {"\xF0\x80\x80\x80", "????"},  //
      {"\xF0\x8F\xBF\xBF"
       "a",
       "????a"},                //
      {"\xED\xA0\x80", "???"},  // surrogate
      {"\xED\xBF\xBF"
       "b",
       "???b"},                                   //
      {"\xF4\x90\x80\x80", "????"},               // beyond U+10FFFF
      {"\xE4\xBDU", "?U"},                        // cut off
      {"\xF0\x9F\x98U", "?U"},                    //
      {"\xF0\x9FU", "?U"},                        //
      {"\xC3(", "?("},                            //
      {"\xE4\xE4\xBD\xA0", "?\xE4\xBD\xA0"},      //
      {"\xE2\x82\xAC\xE2\x82", "\xE2\x82\xAC?"},  //
      {"\xF0\x9F\x98\x80\xF0\x9F\x98", "\xF0\x9F\x98\x80?"},
      {"a\xF1\x80\x80\xE1\x80\xC2"
       "b\x80"
       "c\x80\xBF"
       "d",
       "a???b?c??d"},                                            // Unicode 3.9, table 3-8
      {"\xF4\x8F\xBF\xBF", "\xF4\x8F\xBF\xBF"},                  // the last character
      {"\xED\x9F\xBF\xEE\x80\x80", "\xED\x9F\xBF\xEE\x80\x80"},  // beside the surrogates
  };
  for (const auto& [bytes, expected] : cases) {
    std::string text;
    for (const char c : expected) c == '?' ? text += kReplacementCharacter : text += c;
    EXPECT_EQ(decode(bytes), text) << testing::PrintToString(bytes);
  }
}

TEST(Utf8Test, EveryCodePointIsACharacterAndNothingButAllItsBytes) {
  for (std::uint32_t code_point = 0; code_point <= 0x10FFFF; ++code_point) {
    if (code_point >= 0xD800 && code_point <= 0xDFFF) continue;
    const std::string character = reference::encode(code_point);
    const Utf8Unit unit = utf8_unit(character);
    ASSERT_EQ(unit.kind, Utf8Unit::Kind::kCharacter) << code_point;
    ASSERT_EQ(unit.n_bytes, character.size());
    for (std::size_t n = 1; n < character.size(); ++n)
      ASSERT_EQ(utf8_unit(std::string_view(character).substr(0, n)).kind, Utf8Unit::Kind::kUnfinished) << code_point;
    ASSERT_TRUE(is_utf8(character));
  }
}

TEST(Utf8Test, RandomBytesAreTakenApartLikeTheReference) {
  std::mt19937 random(3);
  constexpr unsigned char kBytes[] = {0x41, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC1, 0xC2, 0xDF, 0xE0,
                                      0xE1, 0xED, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF, 0x98, 0x81};
  for (int run = 0; run < 20'000; ++run) {
    std::string bytes(1 + random() % 8, '\0');
    for (char& byte : bytes) byte = static_cast<char>(kBytes[random() % std::size(kBytes)]);
    std::size_t at = 0;
    for (const reference::Unit& expected : reference::units(bytes)) {
      const Utf8Unit unit = utf8_unit(std::string_view(bytes).substr(at));
      ASSERT_EQ(unit.kind == Utf8Unit::Kind::kCharacter, expected.is_character) << testing::PrintToString(bytes);
      ASSERT_EQ(at + unit.n_bytes, expected.end);
      at = expected.end;
    }
    ASSERT_EQ(utf8_unfinished_suffix(bytes), bytes.size() - at) << testing::PrintToString(bytes);
    ASSERT_EQ(is_utf8(bytes), decode(bytes) == bytes);
  }
}

}  // namespace
}  // namespace fermata
