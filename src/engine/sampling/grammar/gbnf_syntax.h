#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/sampling/grammar/grammar.h"

// The text of a grammar as a tree.
namespace fermata::gbnf {

using CodePointRange = std::pair<std::uint32_t, std::uint32_t>;  // inclusive

inline constexpr std::uint32_t kNoLimit = UINT32_MAX;

struct Expression {
  enum class Kind { kLiteral, kClass, kRule, kSequence, kChoice, kRepeat, kToken, kTokenNot };
  Kind kind = Kind::kSequence;
  std::string literal = {};                  // kLiteral: UTF-8
  std::vector<CodePointRange> ranges = {};   // kClass: as written
  bool negated = false;                      // kClass
  std::uint32_t rule = 0;                    // kRule: index; kToken, kTokenNot: token id
  std::uint32_t least = 0;                   // kRepeat
  std::uint32_t most = 0;                    // kRepeat; kNoLimit
  std::vector<std::uint32_t> children = {};  // indices into Syntax::expressions
};

struct Rule {
  std::string name;
  std::uint32_t body = 0;
  bool defined = false;
  std::size_t used_at = 0;  // byte of the text where it is first named
};

struct Syntax {
  std::vector<Expression> expressions;
  std::vector<Rule> rules;
  std::uint32_t root = 0;  // index of the rule
};

Result<Syntax> parse(std::string_view text, const Grammar::TokenOf& token_of);

// kGrammar, with line, column and the text at `place`.
Error error_at(std::string_view text, std::size_t place, const std::string& what);

}  // namespace fermata::gbnf
