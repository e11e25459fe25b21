#include "api/openai/thought.h"

#include <algorithm>
#include <utility>

namespace fermata::api {
namespace {

constexpr std::string_view kSpace = " \t\r\n";
constexpr std::size_t kSpaceBeforeMax = 64;  // bytes; more of it is an answer

std::size_t n_leading_space(std::string_view text) { return std::min(text.find_first_not_of(kSpace), text.size()); }

// Length of the longest suffix of `text` that begins `marker`, without being all of it.
std::size_t n_open(std::string_view text, std::string_view marker) {
  for (std::size_t n = std::min(text.size(), marker.size() - 1); n > 0; --n)
    if (marker.starts_with(text.substr(text.size() - n))) return n;
  return 0;
}

}  // namespace

ThoughtSplit::ThoughtSplit(ThoughtMarkers markers)
    : markers_(std::move(markers)),
      place_(markers_.end.empty()     ? Place::kAnswer
             : markers_.prompt_opens  ? Place::kThought
             : markers_.begin.empty() ? Place::kAnswer
                                      : Place::kBefore) {}

ThoughtSplit::Parts ThoughtSplit::push(std::string_view text) {
  Parts out;
  held_ += text;
  while (step(out)) {
  }
  return out;
}

ThoughtSplit::Parts ThoughtSplit::finish() {
  Parts out;
  (place_ == Place::kThought ? out.thought : out.answer) = std::exchange(held_, {});
  return out;
}

bool ThoughtSplit::step(Parts& out) {
  switch (place_) {
    case Place::kBefore: return leave_before();
    case Place::kThought: return leave_thought(out);
    case Place::kGap:
      held_.erase(0, n_leading_space(held_));
      if (held_.empty()) return false;
      place_ = Place::kAnswer;
      return true;
    case Place::kAnswer: out.answer += std::exchange(held_, {}); return false;
  }
  return false;
}

bool ThoughtSplit::leave_before() {
  const std::size_t n_space = n_leading_space(held_);
  const std::string_view rest = std::string_view(held_).substr(n_space);
  if (rest.starts_with(markers_.begin)) {
    held_.erase(0, n_space + markers_.begin.size());
    place_ = Place::kThought;
    return true;
  }
  if (markers_.begin.starts_with(rest) && n_space <= kSpaceBeforeMax) return false;
  place_ = Place::kAnswer;
  return true;
}

bool ThoughtSplit::leave_thought(Parts& out) {
  if (is_blank_) held_.erase(0, n_leading_space(held_));
  if (held_.empty()) return false;
  const std::size_t end = held_.find(markers_.end);
  const bool is_over = end != std::string::npos;
  const std::size_t n_thought = is_over ? end : held_.size() - n_open(held_, markers_.end);
  out.thought.append(held_, 0, n_thought);
  is_blank_ = is_blank_ && n_thought == 0;
  held_.erase(0, n_thought + (is_over ? markers_.end.size() : 0));
  if (is_over) place_ = Place::kGap;
  return is_over;
}

}  // namespace fermata::api
