#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/limits.h"

namespace fermata {

// A set of stop strings, ready to be matched byte by byte (Aho-Corasick). Immutable; shared by all folds of a request.
//
// A state is a node of the tree of all prefixes: it stands for the longest suffix of the bytes so far that begins some
// stop string. Nodes are numbered breadth first, so the children of a node are neighbours and the tree needs 9 bytes a
// node. A byte costs O(1) amortised: every failure link followed gives back depth that a byte before it has paid for.
class StopSet {
 public:
  // Precondition: what validate() allows: no empty string, limits kept.
  explicit StopSet(std::vector<std::string> stops);

  using State = std::uint16_t;
  static constexpr State kStart = 0;
  static_assert(limits::kStopStringsMax * limits::kStopStringBytesMax < UINT16_MAX, "a node number must fit");

  // Precondition: no stop string is complete in `state`.
  State next(State state, char byte) const;

  // Bytes at the end that begin a stop string.
  std::size_t depth(State state) const { return depth_[state]; }

  // The longest stop string that ends here (so the one that began first); null if none does.
  const std::string* match(State state) const { return match_[state] == kNoMatch ? nullptr : &stops_[match_[state]]; }

 private:
  static constexpr std::uint8_t kNoMatch = UINT8_MAX;
  static_assert(limits::kStopStringsMax < kNoMatch);

  State child(State state, char byte) const;  // kStart if there is none
  void build_tree();
  void link_failures();

  std::vector<std::string> stops_;
  std::vector<char> byte_;           // [n_nodes] on the edge from its parent
  std::vector<State> child_begin_;   // [n_nodes + 1] children of v: [child_begin_[v], child_begin_[v + 1])
  std::vector<State> failure_;       // [n_nodes] longest proper suffix that is a node
  std::vector<State> depth_;         // [n_nodes]
  std::vector<std::uint8_t> match_;  // [n_nodes] index into stops_
};

}  // namespace fermata
