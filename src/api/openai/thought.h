#pragma once

#include <string>
#include <string_view>

namespace fermata::api {

// How a model writes what it thinks before it answers. No markers: it does not.
struct ThoughtMarkers {
  std::string begin;          // "<think>"; ASCII
  std::string end;            // "</think>"
  bool prompt_opens = false;  // the prompt ends inside a thought
};

// Parts the text of a completion, as it comes, into the thought at its beginning and the answer. Only there: a marker
// in the middle of an answer is text. White space around the markers goes with them, apart from that before the end
// marker. What may yet become a marker is held back; nothing else is. A copy is a clone. Linear.
class ThoughtSplit {
 public:
  explicit ThoughtSplit(ThoughtMarkers markers);

  struct Parts {
    std::string thought;
    std::string answer;
  };
  Parts push(std::string_view text);
  // What was held: there will be no more text.
  Parts finish();

 private:
  enum class Place { kBefore, kThought, kGap, kAnswer };

  bool step(Parts& out);  // false: needs more text
  bool leave_before();
  bool leave_thought(Parts& out);

  ThoughtMarkers markers_;
  Place place_;
  bool is_blank_ = true;  // no character of the thought came yet
  std::string held_;
};

}  // namespace fermata::api
