#include "api/openai/thought.h"

#include <gtest/gtest.h>

namespace fermata::api {
namespace {

const ThoughtMarkers kMarkers{"<think>", "</think>", false};
const ThoughtMarkers kOpened{"<think>", "</think>", true};

struct Case {
  ThoughtMarkers markers;
  std::string text, thought, answer;
};

const Case kCases[] = {
    {kMarkers, "<think>\nWhy?\n</think>\n\nSo.", "Why?\n", "So."},
    {kMarkers, "\n <think>a</think>b", "a", "b"},
    {kMarkers, "<think></think>b", "", "b"},
    {kMarkers, "<think>\n\n</think>\n\n", "", ""},
    {kMarkers, "No thought <think>here</think>", "", "No thought <think>here</think>"},
    {kMarkers, "<think>a</think>b <think>c</think>", "a", "b <think>c</think>"},
    {kMarkers, "<think>a</thin</think>b", "a</thin", "b"},
    {kMarkers, "<think>a</think", "a</think", ""},
    {kMarkers, "<think>a", "a", ""},
    {kMarkers, "<thin", "", "<thin"},
    {kMarkers, "<thinker>", "", "<thinker>"},
    {kMarkers, "  x", "", "  x"},
    {kMarkers, "", "", ""},
    {kMarkers, "<think>é😀</think>好", "é😀", "好"},
    {kMarkers, "<think><think>a</think></think>", "<think>a", "</think>"},
    {kOpened, "\nWhy?</think>So.", "Why?", "So."},
    {kOpened, "Why?", "Why?", ""},
    {{}, "<think>a</think>b", "", "<think>a</think>b"},
};

TEST(ThoughtSplit, PartsTheTextHoweverItIsCut) {
  for (const Case& a_case : kCases) {
    for (std::size_t n_piece = 1; n_piece <= a_case.text.size() + 1; ++n_piece) {
      ThoughtSplit split(a_case.markers);
      std::string thought, answer;
      for (std::size_t i = 0; i < a_case.text.size(); i += n_piece) {
        const auto parts = split.push(std::string_view(a_case.text).substr(i, n_piece));
        thought += parts.thought;
        answer += parts.answer;
      }
      const auto rest = split.finish();
      EXPECT_EQ(thought + rest.thought, a_case.thought) << a_case.text << " in pieces of " << n_piece;
      EXPECT_EQ(answer + rest.answer, a_case.answer) << a_case.text << " in pieces of " << n_piece;
    }
  }
}

TEST(ThoughtSplit, HoldsBackNothingButAMarker) {
  ThoughtSplit split(kMarkers);
  EXPECT_EQ(split.push("<think>ab <").thought, "ab ");
  EXPECT_EQ(split.push("b").thought, "<b");
  EXPECT_EQ(split.push("</think>").thought, "");
  EXPECT_EQ(split.push("x<think").answer, "x<think");
}

TEST(ThoughtSplit, EndlessSpaceIsAnAnswer) {
  ThoughtSplit split(kMarkers);
  EXPECT_EQ(split.push(std::string(100, '\n')).answer.size(), 100u);
}

}  // namespace
}  // namespace fermata::api
