#include "generation/text_stream.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "generation/text_stream_reference.h"

namespace fermata {
namespace {

using Stops = std::vector<std::string>;

TextStream stream_of(const Stops& stops) { return TextStream(std::make_shared<const StopSet>(stops)); }

struct Told {
  std::vector<std::string> deltas;
  std::string text;
  std::string stop_string;
};

// Pushes until a stop string or the end.
Told tell(TextStream stream, const std::vector<std::string>& tokens) {
  Told told;
  const auto take = [&](const TextStream::Step& step) {
    if (!step.released.empty()) told.deltas.push_back(step.released);
    told.text += step.released;
  };
  for (const std::string& token : tokens) {
    if (stream.stopped()) break;
    take(stream.push(token));
  }
  take(stream.finish());
  told.stop_string = stream.stop_string();
  return told;
}

TEST(TextStreamTest, StopsMayBeginAndEndInsideTokens) {
  const Told told = tell(stream_of({"ari"}), {"The city", " of P", "aris", " is"});
  EXPECT_EQ(told.text, "The city of P");
  EXPECT_EQ(told.stop_string, "ari");
  EXPECT_EQ(told.deltas.back(), " of P");
}

TEST(TextStreamTest, OverlappingStopsEndAtTheFirstThatIsComplete) {
  const Stops stops{"\n", "\nUser:", "User"};
  EXPECT_EQ(tell(stream_of(stops), {"Hi", "\n", "User", ":"}).text, "Hi");
  EXPECT_EQ(tell(stream_of(stops), {"Hi", "\nUser:"}).stop_string, "\n");
  EXPECT_EQ(tell(stream_of(stops), {"Hi Us", "er:"}).text, "Hi ");
  const Told two = tell(stream_of({"\nUser:", "User"}), {"Hi\nU", "ser", ":"});
  EXPECT_EQ(two.text, "Hi\n");  // "User" is complete while "\nUser:" is open
  EXPECT_EQ(two.stop_string, "User");
  const Told tie = tell(stream_of({"ser", "\nUser", "User"}), {"Hi\nU", "ser"});
  EXPECT_EQ(tie.text, "Hi");  // of those that end at one byte the one that began first
  EXPECT_EQ(tie.stop_string, "\nUser");
}

TEST(TextStreamTest, HeldTextComesOutOnceWhenItsStopIsNotCompleted) {
  TextStream stream = stream_of({"\nUser:"});
  EXPECT_EQ(stream.push("one\nUs").released, "one");
  EXPECT_EQ(stream.n_bytes_held(), 3u);
  EXPECT_EQ(stream.push("\nUse").released, "\nUs");  // the hold moves to where a stop may still begin
  EXPECT_EQ(stream.push("d").released, "\nUsed");
  EXPECT_EQ(stream.push(" \n").released, " ");
  TextStream::Step end = stream.finish();
  EXPECT_EQ(end.released, "\n");
  EXPECT_FALSE(end.stopped);
  EXPECT_EQ(stream.n_bytes_held(), 0u);
  EXPECT_EQ(stream.finish().released, "");
}

TEST(TextStreamTest, ChineseAndEmojiStops) {
  EXPECT_EQ(tell(stream_of({"好"}), {"你", "\xE5", "\xA5", "\xBD", "吗"}).text, "你");
  EXPECT_EQ(tell(stream_of({"好"}), {"你", "\xE5", "\xA5", "\xB6"}).text, "你奶");  // one byte from the stop
  EXPECT_EQ(tell(stream_of({"😀!"}), {"a\xF0\x9F", "\x98\x80", "?", "\xF0\x9F\x98\x80!"}).text, "a😀?");
}

TEST(TextStreamTest, AStopEqualToASpecialTokensTextMatchesPlainText) {
  const Told told = tell(stream_of({"<|im_end|>"}), {"Bye", "<", "|im", "_end|", ">", "more"});
  EXPECT_EQ(told.text, "Bye");
  EXPECT_EQ(told.deltas.size(), 1u);
}

TEST(TextStreamTest, CharactersSplitOverTokensComeOutWhole) {
  const Told told = tell(stream_of({}), {"a\xE4", "\xBD", "\xA0\xF0", "\x9F\x98", "\x80", "b"});
  EXPECT_EQ(told.deltas, (std::vector<std::string>{"a", "你", "😀", "b"}));
}

TEST(TextStreamTest, AnUnfinishedCharacterIsNeverReleased) {
  EXPECT_EQ(tell(stream_of({}), {"a", "\xF0\x9F\x98"}).text, "a");
  EXPECT_EQ(tell(stream_of({"User"}), {"a\xE4\xBD", "User"}).text, "a\xEF\xBF\xBD");  // "U" showed it to be ill-formed
}

TEST(TextStreamTest, ACharacterBegunInThePromptComesOutWholeOnce) {
  const auto after = [](std::string_view tail, const std::vector<std::string>& tokens) {
    TextStream stream = stream_of({});
    stream.start_after(tail);
    return tell(std::move(stream), tokens).text;
  };
  EXPECT_EQ(after("x\xF0\x9F", {"\x98", "\x80!"}), "😀!");
  EXPECT_EQ(after("\x9F\x98\x80\xE4", {"\xBD\xA0"}), "你");
  EXPECT_EQ(after("\xF0\x9F", {"ok"}), "ok");                      // the model did not write the bad bytes
  EXPECT_EQ(after("\xF0\x9F", {"\x98", "ok"}), "\xEF\xBF\xBDok");  // it wrote one of them
  EXPECT_EQ(after("你好", {"\x80"}), "\xEF\xBF\xBD");              // nothing is open in the prompt
  EXPECT_EQ(after("\xF0\x9F", {"\x98"}), "");
}

TEST(TextStreamTest, CountsAreThoseOfTheCompletionAlone) {
  TextStream stream = stream_of({"stop"});
  stream.start_after("\xF0\x9F");
  EXPECT_EQ(stream.push("\x98").n_bytes_out, 0u);
  EXPECT_EQ(stream.n_bytes_held(), 1u);
  EXPECT_EQ(stream.push("\x80st").n_bytes_out, 2u);
  EXPECT_EQ(stream.n_bytes_held(), 2u);
  EXPECT_EQ(stream.push("op and more").n_bytes_out, 2u);
  EXPECT_EQ(stream.n_bytes_in(), 15u);
}

// ----------------------------------------------------------------------------------------------- against the reference

// How often each thing that can go wrong was met.
using Coverage = std::map<std::string, int>;

struct Script {
  std::string prompt_tail;
  Stops stops;
  std::string raw;
  std::vector<std::string> tokens;
};

class Scripts {
 public:
  explicit Scripts(unsigned seed) : random_(seed) {}

  Script next() {
    Script script;
    const bool dense = below(3) == 0;  // few letters: stops overlap with themselves and each other
    for (std::size_t n = below(5); n > 0; --n) script.stops.push_back(dense ? letters(1 + below(5)) : pick(kStops));
    for (std::size_t n = below(10); n > 0; --n) {
      if (dense && below(4) != 0) {
        script.raw += letters(1 + below(4));
      } else if (!script.stops.empty() && below(3) == 0) {
        const std::string& stop = script.stops[below(script.stops.size())];
        script.raw += stop.substr(0, 1 + below(stop.size()));
      } else {
        script.raw += pick(kPieces);
      }
    }
    if (below(4) == 0) script.prompt_tail = pick(kPieces);
    split(script);
    return script;
  }

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

 private:
  static constexpr auto kStops =
      std::to_array<std::string_view>({"\n", "\nUser:", "User", "ser", "你", "好吗", "😀", "😀\n", "你好", "<|im_end|>",
                                       "a", "aab", "é", "\xBD\xA0", "\x98\x80"});
  static constexpr auto kPieces =
      std::to_array<std::string_view>({"a",        "b",        "aa",       "ab",         "U",        "Us",
                                       "User",     "\nU",      "\n",       ":",          "你",       "好",
                                       "吗",       "😀",        "é",        "<|im_end|>", "\xE4\xBD", "\xBD\xA0",
                                       "\xE4",     "\xA0",     "\xF0\x9F", "\x98\x80",   "\xF0",     "\xF0\x9F\x98",
                                       "\x80",     "\xC3",     "\xC0",     "\xFF",       "\xE0\x80", "\xED\xA0\x80",
                                       "\xF4\x90", "\xF0\x8F", "\xE4U",    "\xC3\n",     "\xF5",     "\xE0\xA0",
                                       "hello",    " "});

  template <std::size_t n>
  std::string pick(const std::array<std::string_view, n>& list) {
    return std::string(list[below(n)]);
  }
  std::string letters(std::size_t n) {
    std::string made;
    for (; n > 0; --n) made += below(3) == 0 ? 'b' : 'a';
    return made;
  }
  void split(Script& script) {
    for (std::size_t at = 0; at < script.raw.size();) {
      const std::size_t n = std::min(below(7), script.raw.size() - at);  // 0: a token without bytes
      script.tokens.push_back(script.raw.substr(at, n));
      at += n;
    }
  }

  std::mt19937 random_;
};

void count_hold(Coverage& coverage, const TextStream& stream, std::string_view raw, std::size_t n_held_for_stop) {
  const std::size_t n_unfinished = utf8_unfinished_suffix(raw);
  if (stream.n_bytes_held() == 0) ++coverage["nothing held"];
  if (n_held_for_stop > 0 && n_unfinished == 0) ++coverage["held for a stop"];
  if (n_held_for_stop > 0 && n_unfinished > 0) ++coverage["held for a stop and a character"];
  if (n_held_for_stop > 0 && stream.n_bytes_held() > n_held_for_stop)
    ++coverage["held for a stop that begins inside a character"];
  if (n_held_for_stop == 0 && n_unfinished > 0)
    ++coverage["held: " + std::to_string(n_unfinished) + " bytes of a character"];
}

void count_stop(Coverage& coverage, const Script& script, std::size_t n_before, std::string_view token,
                const reference::Expected& expected) {
  const std::string_view raw = script.raw;
  const std::size_t end = raw.find(expected.stop_string) + expected.stop_string.size();
  const std::size_t begin = end - expected.stop_string.size();
  if (begin > n_before) ++coverage["stop begins inside a token"];
  if (begin == n_before && end == n_before + token.size()) ++coverage["stop is a token"];
  if (begin < n_before) ++coverage["stop over several tokens"];
  if (end < n_before + token.size()) ++coverage["stop ends inside a token"];
  bool inside_longer = false;
  bool tie = false;
  for (const std::string& stop : script.stops) {
    for (std::size_t n = expected.stop_string.size() + 1; n < stop.size(); ++n)
      inside_longer |= raw.substr(0, end).ends_with(stop.substr(0, n));
    tie |= stop.size() < expected.stop_string.size() && expected.stop_string.ends_with(stop);
  }
  if (inside_longer) ++coverage["stop complete inside an open longer one"];
  if (tie) ++coverage["two stops end at one byte"];
}

void count_ill_formed(Coverage& coverage, std::string_view bytes) {
  const auto at = [](std::string_view part, std::size_t i) { return static_cast<unsigned char>(part[i]); };
  for (const reference::Unit& unit : reference::units(bytes)) {
    if (unit.is_character) continue;
    const std::string_view part = bytes.substr(unit.begin, unit.end - unit.begin);
    const unsigned next = unit.end < bytes.size() ? at(bytes, unit.end) : 0u;
    if (part.size() > 1) ++coverage["ill-formed: several bytes"];
    if (at(part, 0) < 0xC0)
      ++coverage["ill-formed: continuation alone"];
    else if (at(part, 0) < 0xC2 || at(part, 0) > 0xF4)
      ++coverage["ill-formed: never a lead"];
    else if (at(part, 0) == 0xE0 && next >= 0x80 && next < 0xA0)
      ++coverage["ill-formed: overlong"];
    else if (at(part, 0) == 0xF0 && next >= 0x80 && next < 0x90)
      ++coverage["ill-formed: overlong"];
    else if (at(part, 0) == 0xED && next >= 0xA0 && next < 0xC0)
      ++coverage["ill-formed: surrogate"];
    else if (at(part, 0) == 0xF4 && next >= 0x90 && next < 0xC0)
      ++coverage["ill-formed: beyond the last"];
    else
      ++coverage["ill-formed: cut off"];
  }
}

void run_script(const Script& script, std::size_t clone_at, Coverage& coverage) {
  TextStream stream = stream_of(script.stops);
  stream.start_after(script.prompt_tail);
  std::string text;
  std::size_t n_raw = 0;
  for (std::size_t i = 0; i < script.tokens.size() && !stream.stopped(); ++i) {
    if (i == clone_at) {
      TextStream clone = stream;  // goes on instead; the original is gone
      stream = stream_of({});
      stream = std::move(clone);
      ++coverage["cloned"];
    }
    const std::string& token = script.tokens[i];
    const TextStream::Step step = stream.push(token);
    text += step.released;
    const std::string_view raw = std::string_view(script.raw).substr(0, n_raw + token.size());
    const reference::Expected expected = reference::expect(script.prompt_tail, raw, script.stops, false);
    ASSERT_TRUE(is_utf8(step.released));
    ASSERT_EQ(text, expected.text);
    ASSERT_EQ(step.stopped, expected.stopped);
    ASSERT_EQ(step.n_bytes_out, expected.n_bytes_out);
    ASSERT_EQ(stream.n_bytes_out(), expected.n_bytes_out);
    ASSERT_EQ(stream.n_bytes_in(), raw.size());
    ASSERT_EQ(stream.stop_string(), expected.stop_string);
    if (step.stopped)
      count_stop(coverage, script, n_raw, token, expected);
    else
      count_hold(coverage, stream, raw, expected.n_held_for_stop);
    n_raw = raw.size();
  }
  const bool stopped = stream.stopped();
  const TextStream::Step end = stream.finish();
  text += end.released;
  const std::string_view raw = std::string_view(script.raw).substr(0, n_raw);
  const reference::Expected expected = reference::expect(script.prompt_tail, raw, script.stops, true);
  ASSERT_EQ(text, expected.text);
  ASSERT_EQ(end.n_bytes_out, expected.n_bytes_out);
  ASSERT_EQ(stream.finish().released, "");
  if (!stopped && !end.released.empty()) ++coverage["held for a stop and released at the end"];
  if (!stopped && stream.n_bytes_held() > 0) ++coverage["ended inside a character"];
  const std::size_t n_prompt = utf8_unfinished_suffix(script.prompt_tail);
  if (n_prompt > 0 && !raw.empty()) {
    const Utf8Unit unit = utf8_unit(script.prompt_tail.substr(script.prompt_tail.size() - n_prompt) + std::string(raw));
    if (unit.kind == Utf8Unit::Kind::kCharacter)
      ++coverage["character begun in the prompt"];
    else if (unit.n_bytes > n_prompt)
      ++coverage["character of the prompt, broken by the completion's second byte"];
    else
      ++coverage["character of the prompt, not gone on with"];
  }
  count_ill_formed(coverage, raw);
}

TEST(TextStreamTest, RandomSplitsEqualTheReferenceAfterEveryToken) {
  constexpr int kScripts = 100'000;
  Coverage coverage;
  for (int i = 0; i < kScripts; ++i) {
    Scripts scripts(static_cast<unsigned>(i));
    const Script script = scripts.next();
    run_script(script, scripts.below(12), coverage);
    if (HasFatalFailure())
      FAIL() << "script " << i << ": " << testing::PrintToString(script.raw) << " stops "
             << testing::PrintToString(script.stops);
  }
  const std::vector<std::pair<std::string, int>> at_least{
      {"nothing held", 10'000},
      {"held for a stop", 10'000},
      {"held for a stop and a character", 500},
      {"held for a stop that begins inside a character", 200},
      {"held: 1 bytes of a character", 1'000},
      {"held: 2 bytes of a character", 1'000},
      {"held: 3 bytes of a character", 500},
      {"held for a stop and released at the end", 1'000},
      {"ended inside a character", 1'000},
      {"stop begins inside a token", 1'000},
      {"stop is a token", 500},
      {"stop over several tokens", 1'000},
      {"stop ends inside a token", 1'000},
      {"stop complete inside an open longer one", 500},
      {"two stops end at one byte", 500},
      {"ill-formed: several bytes", 1'000},
      {"ill-formed: continuation alone", 1'000},
      {"ill-formed: never a lead", 1'000},
      {"ill-formed: overlong", 500},
      {"ill-formed: surrogate", 500},
      {"ill-formed: beyond the last", 200},
      {"ill-formed: cut off", 1'000},
      {"character begun in the prompt", 50},
      {"character of the prompt, broken by the completion's second byte", 20},
      {"character of the prompt, not gone on with", 200},
      {"cloned", 10'000},
  };
  for (const auto& [what, n] : at_least) EXPECT_GE(coverage[what], n) << what;
}

TEST(TextStreamTest, TheLargestStopSetOfTheWorstKindWorks) {
  // 16 x 1024 bytes that share long prefixes and fail far back.
  Stops stops;
  for (std::size_t i = 0; i < limits::kStopStringsMax; ++i) {
    stops.emplace_back(limits::kStopStringBytesMax, 'a');
    stops.back()[limits::kStopStringBytesMax - 1 - i * 60] = static_cast<char>('b' + i);
  }
  TextStream stream = stream_of(stops);
  std::string raw;
  std::string text;
  for (int i = 0; i < 40; ++i) {
    const std::string token(97, 'a');
    raw += token;
    text += stream.push(token).released;
    ASSERT_FALSE(stream.stopped());
  }
  const reference::Expected expected = reference::expect("", raw, stops, false);
  EXPECT_EQ(text, expected.text);
  EXPECT_EQ(stream.n_bytes_held(), expected.n_held_for_stop);
  EXPECT_TRUE(stream.push("b").stopped);
  EXPECT_EQ(stream.stop_string(), stops[0]);
}

}  // namespace
}  // namespace fermata
