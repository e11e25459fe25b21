#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "engine/sampling/grammar/grammar.h"
#include "engine/sampling/grammar/token_index.h"

namespace fermata {

// Where a text stands in a grammar. A state is the set of all ways to read the text so far, each a node and a stack of
// nodes to return to. States and steps between them are remembered, so that a walk over the vocabulary mostly follows
// numbers; what is remembered never changes an answer. Never throws, never aborts, whatever grammar and tokens; a
// reading that passes limits.h (states, depth) counts as not allowed.
// Owner: one thread. The grammar's index must outlive it.
class Matcher {
 public:
  Matcher(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenIndex> tokens);
  // A copy knows where the text stands and nothing else: cheap, however much was remembered.
  Matcher(const Matcher& other);
  Matcher& operator=(const Matcher& other) { return *this = Matcher(other); }
  Matcher(Matcher&&) = default;
  Matcher& operator=(Matcher&&) = default;

  // No text at all can follow, not even none: the grammar passes a limit at its first step.
  bool dead() const { return current_ == kDead; }
  // The text so far is a whole one: a token that ends the generation is allowed.
  bool complete() const { return states_[current_].complete; }

  bool allows(TokenId token);
  // Moves on; false, with nothing changed, exactly if !allows(token). A token that ends the generation moves nothing.
  bool advance(TokenId token);
  // Bit per token.
  std::span<const std::uint64_t> allowed();

 private:
  using StateId = std::uint32_t;
  using StackId = std::uint32_t;
  static constexpr StateId kDead = 0;
  static constexpr StateId kUnknown = UINT32_MAX;
  static constexpr StackId kBottom = 0;

  struct Frame {
    std::uint32_t node = 0;  // where to go on
    StackId below = kBottom;
    std::uint32_t depth = 0;
  };
  struct Reading {
    std::uint32_t node = 0;
    StackId stack = kBottom;
    bool operator==(const Reading&) const = default;
    bool operator<(const Reading& other) const { return node != other.node ? node < other.node : stack < other.stack; }
  };
  struct State {
    std::vector<Reading> readings;  // at nodes that read a byte or a token; sorted
    bool complete = false;
    bool reads_tokens = false;
    std::vector<StateId> next;  // by byte class
  };
  struct HashReadings {
    std::size_t operator()(const std::vector<Reading>& readings) const;
  };

  void start();
  StackId push(std::uint32_t node, StackId below);
  bool expand(std::uint32_t node, StackId stack);
  StateId intern_expanded(bool within_limits);
  StateId step(StateId from, std::uint8_t byte);
  StateId walk(StateId from, std::string_view bytes);
  StateId after(TokenId token);
  bool fits(const Grammar::Node& node, TokenId token) const;
  void forget_all_but(std::span<StateId> kept);
  StackId copy_stack(const std::vector<Frame>& from, StackId stack);
  StateId copy_state(const std::vector<Frame>& from, const State& state);
  bool overfull() const { return n_readings_ > kReadingsMax || frames_.size() > kReadingsMax; }
  void compute_mask(std::vector<std::uint64_t>& mask);

  static constexpr std::size_t kReadingsMax = 1 << 18;  // remembered, before all but the present is forgotten
  static constexpr std::size_t kMasksMax = 16;

  std::shared_ptr<const Grammar> grammar_;
  std::shared_ptr<const TokenIndex> tokens_;
  std::vector<Frame> frames_;
  std::unordered_map<std::uint64_t, StackId> frame_ids_;
  std::vector<State> states_;
  std::unordered_map<std::vector<Reading>, StateId, HashReadings> state_ids_;
  std::unordered_map<StateId, std::vector<std::uint64_t>> masks_;
  std::size_t n_readings_ = 0;
  StateId current_ = kDead;

  // Of the state being made.
  std::vector<Reading> todo_, found_;
  std::unordered_map<std::uint64_t, bool> seen_;
  bool found_end_ = false;
};

}  // namespace fermata
