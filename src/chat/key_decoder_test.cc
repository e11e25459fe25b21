#include "chat/key_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>

namespace fermata::chat {
namespace {

using Kind = Key::Kind;

std::vector<Key> keys_of(const std::vector<std::string>& pieces) {
  KeyDecoder decoder;
  std::vector<Key> keys;
  Instant now{1000};
  for (const std::string& piece : pieces) decoder.add(piece, now = now + milliseconds(1), keys);
  if (const auto deadline = decoder.deadline()) decoder.expire(*deadline, keys);
  return keys;
}

Key text(std::string what) { return {Kind::kText, std::move(what)}; }

struct Case {
  std::string bytes;
  std::vector<Key> keys;
};

const std::vector<Case> kCases = {
    {"a", {text("a")}},
    {"日é", {text("日"), text("é")}},
    {"\r", {{Kind::kEnter}}},
    {"\n", {{Kind::kEnter}}},
    {"\t", {{Kind::kTab}}},
    {"\x7f\b", {{Kind::kBackspace}, {Kind::kBackspace}}},
    {"\x03\x1a", {{Kind::kControl, "c"}, {Kind::kControl, "z"}}},
    {"\x1b", {{Kind::kEscape}}},
    {"\x1b\x1b", {{Kind::kEscape}, {Kind::kEscape}}},
    {"\x1b\x1b[A", {{Kind::kEscape}, {Kind::kUp}}},
    {"\x1b[A\x1b[B\x1b[C\x1b[D", {{Kind::kUp}, {Kind::kDown}, {Kind::kRight}, {Kind::kLeft}}},
    {"\x1bOA\x1bOD\x1bOH\x1bOF", {{Kind::kUp}, {Kind::kLeft}, {Kind::kHome}, {Kind::kEnd}}},
    {"\x1b[1;5C\x1b[1;3D\x1bO5C", {{Kind::kWordRight}, {Kind::kWordLeft}, {Kind::kWordRight}}},
    {"\x1b[3~\x1b[1~\x1b[4~\x1b[7~\x1b[8~",
     {{Kind::kDelete}, {Kind::kHome}, {Kind::kEnd}, {Kind::kHome}, {Kind::kEnd}}},
    {"\x1b[15~\x1b[?1;2c\x1b[<0;1;1M\x1b[I", {}},  // a function key, answers of terminals
    {"\x1bOM", {{Kind::kEnter}}},
    {"\x1b[[Aa", {text("a")}},  // the Linux console's F1
    {"\x1b[", {}},              // begun, and never ESC
    {"\x1bO", {}},
    {"\x1b[1;\x03", {{Kind::kControl, "c"}}},  // Ctrl-C is never swallowed
    {"\x1b\r\x1b"
     "b\x1b\x7f",
     {{Kind::kAlt, "\r"}, {Kind::kAlt, "b"}, {Kind::kAlt, "\x7f"}}},
    {"\xff"
     "a",
     {text("\uFFFD"), text("a")}},
    {"\xe6\x97"
     "a",
     {text("\uFFFD"), text("a")}},
    {"\xc2\x9b"
     "a",
     {text("a")}},  // C1
    {"\x1b[200~one\ntwo\r\nthree\r\x1b[201~x", {{Kind::kPaste, "one\ntwo\nthree\n"}, text("x")}},
    {"\x1b[200~\x1b[A\x1b\x03\x1b[201~", {{Kind::kPaste, "\x1b[A\x1b\x03"}}},
    {"\x1b[200~\x1b[201~a", {text("a")}},
    {"\x1b[200~\xff\x1b[201~", {{Kind::kPaste, "\uFFFD"}}},
};

TEST(KeyDecoder, KnowsItsKeys) {
  for (const Case& one : kCases) EXPECT_EQ(keys_of({one.bytes}), one.keys) << testing::PrintToString(one.bytes);
}

TEST(KeyDecoder, EachByteByItselfGivesTheSame) {
  for (const Case& one : kCases) {
    std::vector<std::string> pieces;
    for (const char c : one.bytes) pieces.emplace_back(1, c);
    EXPECT_EQ(keys_of(pieces), one.keys) << testing::PrintToString(one.bytes);
  }
}

TEST(KeyDecoder, ALoneEscapeIsDecidedByTimeOrByTheNextByte) {
  KeyDecoder decoder;
  std::vector<Key> keys;
  decoder.add("\x1b", {0}, keys);
  decoder.expire(Instant{} + milliseconds(49), keys);
  EXPECT_TRUE(keys.empty());
  ASSERT_TRUE(decoder.deadline());
  EXPECT_EQ(*decoder.deadline(), Instant{} + milliseconds(50));
  decoder.expire(Instant{} + milliseconds(50), keys);
  EXPECT_EQ(keys, std::vector<Key>{{Kind::kEscape}});
  EXPECT_FALSE(decoder.deadline());
  decoder.add("[A", Instant{} + milliseconds(51), keys);
  EXPECT_EQ(keys.size(), 3u) << "what comes later is text";
}

TEST(KeyDecoder, WhatHasBegunIsNoEscapeHoweverSlowTheLineIs) {
  for (const std::string begun : {"\x1b[", "\x1bO", "\x1b[1;"}) {
    KeyDecoder decoder;
    std::vector<Key> keys;
    decoder.add(begun, {0}, keys);
    decoder.expire(Instant{} + milliseconds(400), keys);
    decoder.add("A", Instant{} + milliseconds(400), keys);
    EXPECT_EQ(keys, std::vector<Key>{{Kind::kUp}}) << testing::PrintToString(begun);
  }
}

TEST(KeyDecoder, APasteWithoutItsEndIsTakenInTheEnd) {
  KeyDecoder decoder;
  std::vector<Key> keys;
  decoder.add("\x1b[200~abc", {0}, keys);
  decoder.expire(Instant{} + seconds(5), keys);
  EXPECT_TRUE(keys.empty());
  decoder.expire(Instant{} + seconds(10), keys);
  EXPECT_EQ(keys, (std::vector<Key>{{Kind::kPaste, "abc"}}));
  decoder.add("\x03", Instant{} + seconds(11), keys);
  EXPECT_EQ(keys.back(), (Key{Kind::kControl, "c"}));
}

TEST(KeyDecoder, APasteOfAnySizeIsBounded) {
  KeyDecoder decoder;
  std::vector<Key> keys;
  decoder.add("\x1b[200~", {0}, keys);
  const std::string piece(100'000, 'x');
  for (int i = 0; i < 50; ++i) decoder.add(piece, {0}, keys);
  decoder.add("\x1b[2", {0}, keys);
  decoder.add("01~y", {0}, keys);
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_LE(keys[0].text.size(), 1'100'000u);
  EXPECT_EQ(keys[1], text("y"));
}

// Sequences put together by chance and cut by chance: whatever the cuts, the keys are the same.
TEST(KeyDecoder, RandomCutsChangeNothing) {
  std::mt19937 chance(20'240'611);
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(chance); };
  for (int round = 0; round < 3000; ++round) {
    std::string bytes;
    for (std::size_t n = 1 + below(8); n > 0; --n) {
      if (below(4) == 0)
        bytes += static_cast<char>(below(256));
      else
        bytes += kCases[below(kCases.size())].bytes;
    }
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t n = 1 + below(std::min<std::size_t>(6, bytes.size() - at));
      pieces.push_back(bytes.substr(at, n));
      at += n;
    }
    ASSERT_EQ(keys_of(pieces), keys_of({bytes})) << testing::PrintToString(bytes);
  }
}

}  // namespace
}  // namespace fermata::chat
