#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace fermata {

// A GBNF grammar (llama.cpp's grammars/README.md) compiled to a network over bytes. Immutable, shared by samplers.
//   rule a ::= "x" b | [0-9]     entry -> split -> bytes{x} -> call b -> end
//                                           \---> bytes{0-9} --------> end
// Differences to llama.cpp's reading, all of them refusals: left recursion is refused also through rules that may be
// empty, as are rules defined twice, reversed ranges, code points that UTF-8 cannot hold.
class Grammar {
 public:
  enum class Kind : std::uint8_t {
    kEnd,       // of its rule
    kBytes,     // one byte of byte_sets[a], then b
    kCall,      // the rule whose entry is a, then b
    kSplit,     // a or b
    kToken,     // the token a, whole, then b
    kTokenNot,  // any other token with bytes than a, whole, then b
  };
  struct Node {
    Kind kind = Kind::kEnd;
    std::uint32_t a = 0;
    std::uint32_t b = 0;
  };
  using ByteSet = std::array<std::uint64_t, 4>;  // bit per byte

  // The id of the single token with this text (control tokens included), for <text> in a grammar.
  using TokenOf = std::function<std::optional<TokenId>(std::string_view)>;

  // Errors: kGrammar with line and column, kTooLarge for what passes limits.h.
  static Result<std::shared_ptr<const Grammar>> parse(std::string_view text, const TokenOf& token_of);

  std::uint32_t root() const { return root_; }
  const Node& node(std::uint32_t index) const { return nodes_[index]; }
  std::size_t n_nodes() const { return nodes_.size(); }
  // Bytes that no part of the grammar tells apart are of one class.
  std::size_t n_classes() const { return n_classes_; }
  std::uint8_t class_of(std::uint8_t byte) const { return class_of_[byte]; }
  bool accepts(const Node& node, std::uint8_t byte) const { return byte_sets_[node.a][byte >> 6] >> (byte & 63) & 1; }

 private:
  friend class GrammarCompiler;
  void number_classes();

  std::vector<Node> nodes_;
  std::vector<ByteSet> byte_sets_;
  std::array<std::uint8_t, 256> class_of_{};
  std::size_t n_classes_ = 0;
  std::uint32_t root_ = 0;
};

}  // namespace fermata
