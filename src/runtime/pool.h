#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "engine/engine.h"
#include "scheduler/plan.h"
#include "scheduler/prefix_tree.h"
#include "scheduler/sequence_ids.h"

namespace fermata {

// Who holds which sequence of the engine's pool, and what of it is worth keeping: live generations hold one sequence
// each; what they leave stays as prefix cache until its cells or its id are needed. Only tokens whose keys and values
// were really computed enter the tree. Owner: the engine thread.
class Pool {
 public:
  explicit Pool(Engine& engine);

  struct Admission {
    SeqId seq{};
    Position n_cached = 0;  // first tokens that are in the pool already, shared, not copied
  };
  // A sequence for these tokens, starting from the longest prefix that is still here in its group: of all but the last
  // one, which is computed again, because its logits decide what follows; `has_row`: these are held elsewhere.
  // kNoSequences if no id is free.
  Result<Admission> admit(std::span<const TokenId> tokens, Instant now, std::uint32_t group = 0, bool has_row = false);

  // What admit() would find of these tokens. A cached source counts as used, so that it is not the next to be evicted.
  struct Known {
    Position n_tokens = 0;
    std::optional<SeqId> cached_source;
  };
  Known known(std::span<const TokenId> tokens, Instant now, std::uint32_t group = 0, bool has_row = false);

  // The sequence now has these tokens computed; others may share them.
  void publish(SeqId seq, std::span<const TokenId> computed);

  // The sequence gives up its tokens from n_tokens on; what is left of it is no longer shared with newcomers.
  void take_back(SeqId seq, Position n_tokens);

  // Its generation is done with it. It stays as cache if it holds anything that no other entry holds.
  void retire(SeqId seq, std::span<const TokenId> computed, Instant now);

  // Its generation is done with it, and so are we (pages were taken out, or it failed).
  void release(SeqId seq);

  // A cached sequence goes.
  void evict(SeqId seq);

  // Least recently used first. `exactly`: cells that cached sequences share are counted with the last of them that
  // goes; costs their length. Otherwise such cells are not counted.
  std::vector<CachedView> cached(bool exactly) const;
  PoolView view(std::span<const CachedView> cached, std::uint32_t n_pinned) const;
  std::uint32_t n_free() const { return engine_.ledger().n_free(); }
  std::uint64_t n_evictions() const { return n_evictions_; }

  // Ends the process if books disagree: every id is held, cached or free, and every cell has an owner among the first
  // two.
  void audit() const;

 private:
  Engine& engine_;
  SequenceIds ids_;
  PrefixTree& tree_of(SeqId seq) { return trees_.at(group_of_.at(seq)); }

  std::map<std::uint32_t, PrefixTree> trees_;          // by group, as long as a sequence of it is held or cached
  std::unordered_map<SeqId, std::uint32_t> group_of_;  // of those held or cached
  // The last use of each: when, and which of all uses, since several may come at one time.
  struct Use {
    Instant at;
    std::uint64_t number = 0;
  };
  Use use(Instant now) { return {now, ++n_uses_}; }

  std::unordered_map<SeqId, Use> cached_;
  std::uint64_t n_uses_ = 0;
  std::uint64_t n_evictions_ = 0;
};

}  // namespace fermata
