#include "generation/stop_set.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace fermata {

StopSet::StopSet(std::vector<std::string> stops) : stops_(std::move(stops)) {
  FERMATA_CHECK_LE(stops_.size(), limits::kStopStringsMax);
  for (const std::string& stop : stops_) {
    FERMATA_CHECK(!stop.empty());
    FERMATA_CHECK_LE(stop.size(), limits::kStopStringBytesMax);
  }
  build_tree();
  link_failures();
}

void StopSet::build_tree() {
  // With the stops sorted, those that share a prefix are neighbours: a node is a range of them at one depth.
  std::vector<std::uint8_t> order(stops_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint8_t>(i);
  std::stable_sort(order.begin(), order.end(), [this](auto a, auto b) { return stops_[a] < stops_[b]; });

  std::vector<std::pair<std::size_t, std::size_t>> ranges{{0, order.size()}};
  byte_.push_back(0);
  depth_.push_back(0);
  for (std::size_t node = 0; node < ranges.size(); ++node) {
    auto [begin, end] = ranges[node];
    const State depth = depth_[node];
    child_begin_.push_back(static_cast<State>(ranges.size()));
    match_.push_back(kNoMatch);
    // A stop that ends at this node sorts before the longer ones. Of equal ones the first is reported.
    for (; begin < end && stops_[order[begin]].size() == depth; ++begin)
      if (match_[node] == kNoMatch) match_[node] = order[begin];
    while (begin < end) {
      const char byte = stops_[order[begin]][depth];
      std::size_t last = begin;
      while (last < end && stops_[order[last]][depth] == byte) ++last;
      ranges.emplace_back(begin, last);
      byte_.push_back(byte);
      depth_.push_back(static_cast<State>(depth + 1));
      begin = last;
    }
  }
  child_begin_.push_back(static_cast<State>(ranges.size()));
}

void StopSet::link_failures() {
  failure_.assign(byte_.size(), kStart);
  for (std::size_t node = 0; node < byte_.size(); ++node) {
    // Breadth first: everything less deep has its link already.
    for (State below = child_begin_[node]; below < child_begin_[node + 1]; ++below) {
      if (node != kStart) failure_[below] = next(failure_[node], byte_[below]);
      if (match_[below] == kNoMatch) match_[below] = match_[failure_[below]];
    }
  }
}

StopSet::State StopSet::child(State state, char byte) const {
  for (State below = child_begin_[state]; below < child_begin_[state + 1u]; ++below)
    if (byte_[below] == byte) return below;
  return kStart;
}

StopSet::State StopSet::next(State state, char byte) const {
  while (true) {
    if (const State below = child(state, byte); below != kStart) return below;
    if (state == kStart) return kStart;
    state = failure_[state];
  }
}

}  // namespace fermata
