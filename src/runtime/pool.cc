#include "runtime/pool.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace fermata {

Pool::Pool(Engine& engine) : engine_(engine), ids_(engine.ledger().n_seqs()) {}

Result<Pool::Admission> Pool::admit(std::span<const TokenId> tokens, Instant now, std::uint32_t group, bool has_row) {
  FERMATA_CHECK(!tokens.empty());
  const std::optional<SeqId> seq = ids_.take();
  if (!seq) return Error{Code::kNoSequences, "all sequence ids are taken", {}, true};
  Admission admission{*seq, 0};
  group_of_[*seq] = group;
  if (const auto match = trees_[group].longest_match(tokens.first(tokens.size() - (has_row ? 0 : 1)))) {
    engine_.share(match->seq, *seq, match->n_tokens);
    admission.n_cached = match->n_tokens;
    if (const auto entry = cached_.find(match->seq); entry != cached_.end()) entry->second = use(now);
  }
  return admission;
}

Pool::Known Pool::known(std::span<const TokenId> tokens, Instant now, std::uint32_t group, bool has_row) {
  const auto tree = trees_.find(group);
  if (tree == trees_.end()) return {};
  const auto match = tree->second.longest_match(tokens.first(tokens.size() - (has_row ? 0 : 1)));
  if (!match) return {};
  Known known{match->n_tokens, std::nullopt};
  if (const auto entry = cached_.find(match->seq); entry != cached_.end()) {
    entry->second = use(now);
    known.cached_source = match->seq;
  }
  return known;
}

void Pool::publish(SeqId seq, std::span<const TokenId> computed) {
  FERMATA_CHECK_LE(static_cast<Position>(computed.size()), engine_.ledger().length(seq));
  if (computed.empty()) return;
  PrefixTree& tree = tree_of(seq);
  if (tree.contains(seq))
    tree.extend(seq, computed);
  else
    tree.insert(seq, computed);
}

void Pool::take_back(SeqId seq, Position n_tokens) {
  tree_of(seq).truncate(seq, 0);
  engine_.trim(seq, n_tokens);
}

void Pool::retire(SeqId seq, std::span<const TokenId> computed, Instant now) {
  PrefixTree& tree = tree_of(seq);
  tree.truncate(seq, 0);
  const auto other = computed.empty() ? std::nullopt : tree.longest_match(computed);
  const bool adds_nothing = computed.empty() || (other && other->n_tokens == static_cast<Position>(computed.size()));
  if (adds_nothing) {
    release(seq);
    return;
  }
  engine_.trim(seq, static_cast<Position>(computed.size()));
  tree.insert(seq, computed);
  cached_.emplace(seq, use(now));
}

void Pool::release(SeqId seq) {
  const std::uint32_t group = group_of_.at(seq);
  trees_.at(group).truncate(seq, 0);
  group_of_.erase(seq);
  const bool is_last =
      std::none_of(group_of_.begin(), group_of_.end(), [&](const auto& e) { return e.second == group; });
  if (is_last) trees_.erase(group);
  engine_.trim(seq, 0);
  ids_.give_back(seq);
}

void Pool::evict(SeqId seq) {
  FERMATA_CHECK_EQ(cached_.erase(seq), std::size_t{1});
  ++n_evictions_;
  release(seq);
}

std::vector<CachedView> Pool::cached(bool exactly) const {
  std::vector<std::pair<std::uint64_t, CachedView>> by_use;
  by_use.reserve(cached_.size());
  for (const auto& [seq, last] : cached_)
    by_use.push_back({last.number, {seq, engine_.ledger().n_exclusive(seq), last.at}});
  std::sort(by_use.begin(), by_use.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<CachedView> views;
  views.reserve(by_use.size());
  for (const auto& [number, view] : by_use) views.push_back(view);
  if (exactly) {
    std::vector<SeqId> order;
    for (const CachedView& view : views) order.push_back(view.seq);
    const std::vector<std::uint32_t> freed = engine_.ledger().freed_by(order);
    for (std::size_t i = 0; i < views.size(); ++i) views[i].n_exclusive = freed[i];
  }
  return views;
}

PoolView Pool::view(std::span<const CachedView> cached, std::uint32_t n_pinned) const {
  const KvLedger& ledger = engine_.ledger();
  return {ledger.n_cells(), ledger.n_free(), ids_.n_free(), cached, n_pinned};
}

void Pool::audit() const {
  const KvLedger& ledger = engine_.ledger();
  ledger.audit();
  for (const auto& [group, tree] : trees_) tree.audit();
  for (std::int32_t i = 0; i < ledger.n_seqs(); ++i) {
    const SeqId seq{i};
    if (!ids_.is_taken(seq)) FERMATA_CHECK_EQ(ledger.length(seq), 0);
    FERMATA_CHECK_EQ(ids_.is_taken(seq), group_of_.contains(seq));
    if (cached_.contains(seq)) FERMATA_CHECK(trees_.at(group_of_.at(seq)).contains(seq));
  }
}

}  // namespace fermata
