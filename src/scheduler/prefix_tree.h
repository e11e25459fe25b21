#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "base/ids.h"

namespace fermata {

// Which token prefixes are in the pool, under which sequence. A radix tree over token ids; an entry says "the first n
// tokens of this path are computed and owned by `seq`". It holds only what was really computed. Pure; owner: the engine
// thread.
//
//   root ── [1 5 5 9] ──┬── [2 2]   entries: seq 3, seq 8      an edge is a run of tokens; an entry stands at the end
//                       └── [7]     entries: seq 4             of one; a node without entries has two children or more
//
// All answers depend on the order of calls alone, so a run can be replayed.
class PrefixTree {
 public:
  PrefixTree();
  ~PrefixTree();
  PrefixTree(PrefixTree&&) noexcept;
  PrefixTree& operator=(PrefixTree&&) noexcept;

  struct Match {
    SeqId seq{};
    Position n_tokens = 0;
  };
  // The longest prefix of `tokens` that some entry has, and an entry that has it. Nothing for 0 tokens. Linear in the
  // length of the match; each branching on the way, and below it down to the nearest entry, costs a look-up.
  std::optional<Match> longest_match(std::span<const TokenId> tokens) const;

  // seq (not in the tree) has these tokens (1 or more) computed. Replaces nothing: several entries may share a path.
  void insert(SeqId seq, std::span<const TokenId> tokens);
  // seq has more tokens now: `tokens` extends what was inserted, or equals it. Linear in what is new.
  void extend(SeqId seq, std::span<const TokenId> tokens);
  // seq lost what is at or after n_tokens (0: it leaves the tree). Nothing happens if it is not in the tree, or not so
  // long.
  void truncate(SeqId seq, Position n_tokens);

  bool contains(SeqId seq) const;
  // Tokens of its entry; 0 if it is not in the tree.
  Position length(SeqId seq) const;
  std::size_t n_entries() const;
  // Ends the process if an invariant is broken. O(size of the tree).
  void audit() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fermata
