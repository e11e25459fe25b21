#include "engine/sampling/grammar/matcher.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/limits.h"

namespace fermata {
namespace {

std::uint64_t pair_key(std::uint32_t a, std::uint32_t b) { return std::uint64_t{a} << 32 | b; }

void set_bit(std::vector<std::uint64_t>& mask, TokenId token) {
  const auto i = static_cast<std::size_t>(raw(token));
  mask[i >> 6] |= std::uint64_t{1} << (i & 63);
}

}  // namespace

std::size_t Matcher::HashReadings::operator()(const std::vector<Reading>& readings) const {
  std::uint64_t hash = readings.size();
  for (const Reading& reading : readings) {
    hash = (hash ^ pair_key(reading.node, reading.stack)) * 0x9E3779B97F4A7C15;
    hash ^= hash >> 29;
  }
  return hash;
}

Matcher::Matcher(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenIndex> tokens)
    : grammar_(std::move(grammar)), tokens_(std::move(tokens)) {
  start();
  found_.clear();
  current_ = intern_expanded(expand(grammar_->root(), kBottom));
}

Matcher::Matcher(const Matcher& other) : grammar_(other.grammar_), tokens_(other.tokens_) {
  start();
  current_ = copy_state(other.frames_, other.states_[other.current_]);
}

void Matcher::start() {
  frames_.assign(1, Frame{});
  frame_ids_.clear();
  states_.assign(1, State{});  // kDead
  states_[kDead].next.assign(grammar_->n_classes(), kDead);
  state_ids_.clear();
  masks_.clear();
  n_readings_ = 0;
}

Matcher::StackId Matcher::push(std::uint32_t node, StackId below) {
  const auto [entry, added] = frame_ids_.try_emplace(pair_key(node, below), static_cast<StackId>(frames_.size()));
  if (added) frames_.push_back({node, below, frames_[below].depth + 1});
  return entry->second;
}

// Adds to found_ all readings that (node, stack) leads to without reading anything. False when a limit is passed.
// Ends because the grammar is not left-recursive.
bool Matcher::expand(std::uint32_t node, StackId stack) {
  todo_.assign(1, {node, stack});
  while (!todo_.empty()) {
    const Reading at = todo_.back();
    todo_.pop_back();
    if (!seen_.try_emplace(pair_key(at.node, at.stack)).second) continue;
    if (seen_.size() > 8 * limits::kGrammarStatesMax) return false;
    const Grammar::Node& n = grammar_->node(at.node);
    switch (n.kind) {
      case Grammar::Kind::kEnd:
        if (at.stack == kBottom) {
          found_end_ = true;
        } else {
          todo_.push_back({frames_[at.stack].node, frames_[at.stack].below});
        }
        break;
      case Grammar::Kind::kCall: {
        // A call at the end of its rule need not come back to it: right recursion costs no depth.
        const bool last = grammar_->node(n.b).kind == Grammar::Kind::kEnd;
        const StackId inner = last ? at.stack : push(n.b, at.stack);
        if (frames_[inner].depth > limits::kGrammarDepthMax) return false;
        todo_.push_back({n.a, inner});
        break;
      }
      case Grammar::Kind::kSplit:
        todo_.push_back({n.b, at.stack});
        todo_.push_back({n.a, at.stack});
        break;
      default:
        if (found_.size() >= limits::kGrammarStatesMax) return false;
        found_.push_back(at);
    }
  }
  return true;
}

// The state of found_, which expand() filled; clears the buffers for the next one.
Matcher::StateId Matcher::intern_expanded(bool within_limits) {
  const bool complete = std::exchange(found_end_, false);
  std::vector<Reading> readings = std::exchange(found_, {});
  seen_.clear();
  if (!within_limits || (readings.empty() && !complete)) return kDead;
  std::sort(readings.begin(), readings.end());
  // The end is a reading too: without it a state that is complete would be taken for one that is not.
  if (complete) readings.push_back({UINT32_MAX, kBottom});
  const auto [entry, added] = state_ids_.try_emplace(readings, static_cast<StateId>(states_.size()));
  if (!added) return entry->second;
  if (complete) readings.pop_back();
  State state;
  state.complete = complete;
  state.reads_tokens = std::any_of(readings.begin(), readings.end(), [&](const Reading& reading) {
    return grammar_->node(reading.node).kind != Grammar::Kind::kBytes;
  });
  state.next.assign(grammar_->n_classes(), kUnknown);
  n_readings_ += readings.size() + state.next.size() / 2;
  state.readings = std::move(readings);
  states_.push_back(std::move(state));
  return entry->second;
}

Matcher::StateId Matcher::step(StateId from, std::uint8_t byte) {
  const std::uint8_t byte_class = grammar_->class_of(byte);
  if (const StateId known = states_[from].next[byte_class]; known != kUnknown) return known;
  bool within_limits = true;
  for (std::size_t i = 0; within_limits && i < states_[from].readings.size(); ++i) {
    const Reading reading = states_[from].readings[i];
    const Grammar::Node& node = grammar_->node(reading.node);
    if (node.kind != Grammar::Kind::kBytes || !grammar_->accepts(node, byte)) continue;
    within_limits = expand(node.b, reading.stack);
  }
  const StateId to = intern_expanded(within_limits);
  states_[from].next[byte_class] = to;
  return to;
}

Matcher::StateId Matcher::walk(StateId from, std::string_view bytes) {
  for (const char c : bytes) {
    if (from == kDead) break;
    from = step(from, static_cast<std::uint8_t>(c));
  }
  return from;
}

bool Matcher::fits(const Grammar::Node& node, TokenId token) const {
  const bool same = node.a == static_cast<std::uint32_t>(raw(token));
  if (node.kind == Grammar::Kind::kToken) return same;
  return node.kind == Grammar::Kind::kTokenNot && !same && !tokens_->bytes(token).empty();
}

// The state behind a token that does not end the generation; kDead if it is not allowed.
Matcher::StateId Matcher::after(TokenId token) {
  const std::string_view bytes = tokens_->bytes(token);
  const StateId by_bytes = bytes.empty() ? kDead : walk(current_, bytes);
  if (!states_[current_].reads_tokens) return by_bytes;
  bool within_limits = true;
  for (std::size_t i = 0; within_limits && i < states_[current_].readings.size(); ++i) {
    const Reading reading = states_[current_].readings[i];
    const Grammar::Node& node = grammar_->node(reading.node);
    if (fits(node, token)) within_limits = expand(node.b, reading.stack);
  }
  for (std::size_t i = 0; within_limits && i < states_[by_bytes].readings.size(); ++i) {
    within_limits = expand(states_[by_bytes].readings[i].node, states_[by_bytes].readings[i].stack);
  }
  found_end_ = found_end_ || states_[by_bytes].complete;
  return intern_expanded(within_limits);
}

bool Matcher::allows(TokenId token) {
  if (tokens_->ends_generation(token)) return complete();
  return after(token) != kDead;
}

bool Matcher::advance(TokenId token) {
  if (tokens_->ends_generation(token)) return complete();
  const StateId next = after(token);
  if (next == kDead) return false;
  current_ = next;
  if (overfull()) forget_all_but({&current_, 1});
  return true;
}

std::span<const std::uint64_t> Matcher::allowed() {
  const auto known = masks_.find(current_);
  if (known != masks_.end()) return known->second;
  std::vector<std::uint64_t> mask((tokens_->n_tokens() + 63) / 64, 0);
  compute_mask(mask);
  if (masks_.size() >= kMasksMax) masks_.clear();
  return masks_[current_] = std::move(mask);
}

void Matcher::compute_mask(std::vector<std::uint64_t>& mask) {
  if (complete()) {
    for (const TokenId token : tokens_->ends()) set_bit(mask, token);
  }
  constexpr std::size_t kAlive = SIZE_MAX;
  std::vector<StateId> path(tokens_->longest() + 2, kDead);  // path[i]: after i bytes; path.back(): current_
  path[0] = current_;
  std::size_t dead_after = kAlive;  // bytes of the entry before that cannot be read
  std::size_t n_valid = 1;
  for (const TokenIndex::Entry& entry : tokens_->sorted()) {
    if (entry.n_shared >= dead_after) continue;
    dead_after = kAlive;
    for (std::size_t i = entry.n_shared; i < entry.bytes.size(); ++i) {
      path[i + 1] = step(path[i], static_cast<std::uint8_t>(entry.bytes[i]));
      if (path[i + 1] == kDead) {
        dead_after = i + 1;
        break;
      }
      n_valid = i + 2;
      if (overfull()) {
        std::fill(path.begin() + static_cast<std::ptrdiff_t>(n_valid), path.end(), kDead);
        path.back() = current_;
        forget_all_but(path);
        current_ = path.back();
      }
    }
    if (dead_after == kAlive) set_bit(mask, entry.token);
  }
  if (!states_[current_].reads_tokens) return;
  for (std::size_t i = 0; i < tokens_->n_tokens(); ++i) {
    const TokenId token{static_cast<std::int32_t>(i)};
    if (!tokens_->ends_generation(token) && after(token) != kDead) set_bit(mask, token);
  }
}

Matcher::StackId Matcher::copy_stack(const std::vector<Frame>& from, StackId stack) {
  std::vector<std::uint32_t> nodes;
  for (; stack != kBottom; stack = from[stack].below) nodes.push_back(from[stack].node);
  StackId copy = kBottom;
  for (std::size_t i = nodes.size(); i-- > 0;) copy = push(nodes[i], copy);
  return copy;
}

Matcher::StateId Matcher::copy_state(const std::vector<Frame>& from, const State& state) {
  for (const Reading& reading : state.readings) found_.push_back({reading.node, copy_stack(from, reading.stack)});
  found_end_ = state.complete;
  return intern_expanded(true);
}

// Starts the memory anew with these states alone, and renumbers them in place.
void Matcher::forget_all_but(std::span<StateId> kept) {
  const std::vector<State> states = std::exchange(states_, {});
  const std::vector<Frame> frames = std::exchange(frames_, {});
  start();
  std::unordered_map<StateId, StateId> renumbered{{kDead, kDead}};
  for (StateId& id : kept) {
    const auto known = renumbered.find(id);
    const StateId copy = known != renumbered.end() ? known->second : copy_state(frames, states[id]);
    renumbered[id] = copy;
    id = copy;
  }
}

}  // namespace fermata
