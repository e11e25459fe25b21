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
class PrefixTree {
 public:
  PrefixTree();
  ~PrefixTree();

  struct Match {
    SeqId seq{};
    Position n_tokens = 0;
  };
  // The longest prefix of `tokens` that some entry has, and an entry that has it. Nothing for 0 tokens.
  std::optional<Match> longest_match(std::span<const TokenId> tokens) const;

  // seq (not in the tree) has these tokens computed. Replaces nothing: several entries may share a path.
  void insert(SeqId seq, std::span<const TokenId> tokens);
  // seq has more tokens now: `tokens` extends what was inserted.
  void extend(SeqId seq, std::span<const TokenId> tokens);
  // seq lost what is at or after n_tokens (0: it leaves the tree).
  void truncate(SeqId seq, Position n_tokens);

  bool contains(SeqId seq) const;
  std::size_t n_entries() const;
  void audit() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fermata
