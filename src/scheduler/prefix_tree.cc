#include "scheduler/prefix_tree.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.h"

namespace fermata {

namespace {

// A node is the end of its edge. Invariant (audit): below the root, a node without entries has two children or more.
struct Node {
  Node* parent = nullptr;
  std::vector<TokenId> edge;                          // from its parent to here; empty at the root alone
  std::map<TokenId, std::unique_ptr<Node>> children;  // by first token of their edge
  std::vector<SeqId> entries;                         // that end here
  Position depth = 0;                                 // tokens from the root to here

  bool is_root() const { return parent == nullptr; }
  Position edge_begin() const { return depth - static_cast<Position>(edge.size()); }
};

std::size_t n_common(std::span<const TokenId> a, std::span<const TokenId> b) {
  const auto [end, unused] = std::mismatch(a.begin(), a.begin() + std::min(a.size(), b.size()), b.begin());
  return static_cast<std::size_t>(end - a.begin());
}

Node* child_of(const Node& node, TokenId first) {
  const auto child = node.children.find(first);
  return child == node.children.end() ? nullptr : child->second.get();
}

// Cuts the edge of `node` at `depth`, within the edge; returns the new node there.
Node* split(Node* node, Position depth) {
  Node* parent = node->parent;
  const auto cut = node->edge.begin() + (depth - node->edge_begin());
  auto& slot = parent->children.at(node->edge.front());
  auto upper = std::make_unique<Node>();
  upper->parent = parent;
  upper->edge.assign(node->edge.begin(), cut);
  upper->depth = depth;
  node->edge.erase(node->edge.begin(), cut);
  node->parent = upper.get();
  Node* result = upper.get();
  upper->children.emplace(node->edge.front(), std::move(slot));
  slot = std::move(upper);
  return result;
}

// Joins a node that has neither entries nor a choice of children with its only child.
void join_with_child(Node* node) {
  std::unique_ptr<Node> child = std::move(node->children.begin()->second);
  auto& slot = node->parent->children.at(node->edge.front());
  child->edge.insert(child->edge.begin(), node->edge.begin(), node->edge.end());
  child->parent = node->parent;
  slot = std::move(child);  // destroys node
}

}  // namespace

struct PrefixTree::Impl {
  Node root;
  std::unordered_map<SeqId, Node*> node_of;  // where each entry stands

  Node* descend_or_make(Node* from, std::span<const TokenId> tokens);
  void move_entry(SeqId seq, Node* to);
  void prune(Node* node);
  void audit(const Node& node, std::size_t& n_entries) const;
};

// The node at the end of `tokens`, made where it is missing. tokens: all from the root; from->depth of them lead to
// `from`.
Node* PrefixTree::Impl::descend_or_make(Node* from, std::span<const TokenId> tokens) {
  Node* node = from;
  while (node->depth < static_cast<Position>(tokens.size())) {
    const auto rest = tokens.subspan(static_cast<std::size_t>(node->depth));
    Node* child = child_of(*node, rest.front());
    if (child == nullptr) {
      auto leaf = std::make_unique<Node>();
      leaf->parent = node;
      leaf->edge.assign(rest.begin(), rest.end());
      leaf->depth = static_cast<Position>(tokens.size());
      child = leaf.get();
      node->children.emplace(rest.front(), std::move(leaf));
      return child;
    }
    const std::size_t n = n_common(child->edge, rest);
    node = n == child->edge.size() ? child : split(child, child->edge_begin() + static_cast<Position>(n));
  }
  return node;
}

// `to` takes the entry before its old node is looked at, so that neither is removed as empty by mistake.
void PrefixTree::Impl::move_entry(SeqId seq, Node* to) {
  Node* from = node_of.at(seq);
  std::erase(from->entries, seq);
  to->entries.push_back(seq);
  node_of[seq] = to;
  prune(from);
}

// Removes what the invariant does not allow to stay.
void PrefixTree::Impl::prune(Node* node) {
  while (!node->is_root() && node->entries.empty() && node->children.empty()) {
    Node* parent = node->parent;
    const TokenId first = node->edge.front();
    parent->children.erase(first);
    node = parent;
  }
  if (!node->is_root() && node->entries.empty() && node->children.size() == 1) join_with_child(node);
}

PrefixTree::PrefixTree() : impl_(std::make_unique<Impl>()) {}
PrefixTree::~PrefixTree() = default;
PrefixTree::PrefixTree(PrefixTree&&) noexcept = default;
PrefixTree& PrefixTree::operator=(PrefixTree&&) noexcept = default;

std::optional<PrefixTree::Match> PrefixTree::longest_match(std::span<const TokenId> tokens) const {
  const Node* node = &impl_->root;
  std::size_t n = 0;
  while (n < tokens.size()) {
    const Node* child = child_of(*node, tokens[n]);
    if (child == nullptr) break;
    n += n_common(child->edge, tokens.subspan(n));
    node = child;
    if (static_cast<Position>(n) < child->depth) break;
  }
  if (n == 0) return std::nullopt;
  while (node->entries.empty()) node = node->children.begin()->second.get();
  return Match{node->entries.front(), static_cast<Position>(n)};
}

void PrefixTree::insert(SeqId seq, std::span<const TokenId> tokens) {
  FERMATA_CHECK(!tokens.empty());
  FERMATA_CHECK(!contains(seq));
  Node* node = impl_->descend_or_make(&impl_->root, tokens);
  node->entries.push_back(seq);
  impl_->node_of.emplace(seq, node);
}

void PrefixTree::extend(SeqId seq, std::span<const TokenId> tokens) {
  FERMATA_CHECK(contains(seq));
  Node* node = impl_->node_of.at(seq);
  const auto n_before = static_cast<std::size_t>(node->depth);
  FERMATA_CHECK_LE(n_before, tokens.size());
  FERMATA_CHECK_EQ(node->edge.back(), tokens[n_before - 1]);
  if (n_before == tokens.size()) return;
  if (node->children.empty() && node->entries.size() == 1) {  // the common case: a stream grows alone
    const auto more = tokens.subspan(n_before);
    node->edge.insert(node->edge.end(), more.begin(), more.end());
    node->depth = static_cast<Position>(tokens.size());
    return;
  }
  impl_->move_entry(seq, impl_->descend_or_make(node, tokens));
}

void PrefixTree::truncate(SeqId seq, Position n_tokens) {
  FERMATA_CHECK_LE(0, n_tokens);
  if (length(seq) <= n_tokens) return;
  Node* node = impl_->node_of.at(seq);
  if (n_tokens == 0) {
    std::erase(node->entries, seq);
    impl_->node_of.erase(seq);
    impl_->prune(node);
    return;
  }
  while (node->edge_begin() >= n_tokens) node = node->parent;
  impl_->move_entry(seq, node->depth == n_tokens ? node : split(node, n_tokens));
}

bool PrefixTree::contains(SeqId seq) const { return impl_->node_of.contains(seq); }

Position PrefixTree::length(SeqId seq) const {
  const auto entry = impl_->node_of.find(seq);
  return entry == impl_->node_of.end() ? 0 : entry->second->depth;
}

std::size_t PrefixTree::n_entries() const { return impl_->node_of.size(); }

void PrefixTree::audit() const {
  std::size_t n = 0;
  impl_->audit(impl_->root, n);
  FERMATA_CHECK_EQ(n, impl_->node_of.size());
}

void PrefixTree::Impl::audit(const Node& node, std::size_t& n_entries) const {
  for (const SeqId seq : node.entries) FERMATA_CHECK(node_of.at(seq) == &node);
  n_entries += node.entries.size();
  if (!node.is_root()) {
    FERMATA_CHECK_LT(std::size_t{0}, node.edge.size());
    FERMATA_CHECK(!node.entries.empty() || node.children.size() >= 2);
  } else {
    FERMATA_CHECK(node.entries.empty());
  }
  for (const auto& [first, child] : node.children) {
    FERMATA_CHECK(child->parent == &node);
    FERMATA_CHECK_EQ(child->edge.front(), first);
    FERMATA_CHECK_EQ(child->edge_begin(), node.depth);
    audit(*child, n_entries);
  }
}

}  // namespace fermata
