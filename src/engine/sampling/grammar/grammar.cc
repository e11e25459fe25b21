#include "engine/sampling/grammar/grammar.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/limits.h"
#include "engine/sampling/grammar/gbnf_syntax.h"
#include "engine/sampling/grammar/utf8_ranges.h"

namespace fermata {

// Writes expressions out as nodes, from behind: emit(expression, next) returns the entry of what reads the expression
// and goes on at next. Past the limit it emits nothing more.
class GrammarCompiler {
 public:
  GrammarCompiler(const gbnf::Syntax& syntax, std::string_view text) : syntax_(syntax), text_(text) {}

  Result<std::shared_ptr<const Grammar>> run() {
    // A call names the rule's index until all entries are known.
    for (const gbnf::Rule& rule : syntax_.rules) {
      entries_.push_back(emit(rule.body, node(Kind::kEnd, 0, 0)));
      if (full_) return too_large();
      rule_of_node_.resize(nodes().size(), static_cast<std::uint32_t>(entries_.size() - 1));
    }
    if (auto ok = refuse_left_recursion(); !ok) return ok.error();
    for (Grammar::Node& n : nodes()) {
      if (n.kind == Kind::kCall) n.a = entries_[n.a];
    }
    grammar_->root_ = entries_[syntax_.root];
    grammar_->number_classes();
    return std::shared_ptr<const Grammar>(std::move(grammar_));
  }

 private:
  using Kind = Grammar::Kind;
  using Expression = gbnf::Expression;

  std::vector<Grammar::Node>& nodes() { return grammar_->nodes_; }

  Error too_large() const {
    return Error{Code::kTooLarge,
                 "grammar: written out it has more than " + std::to_string(limits::kGrammarNodesMax) +
                     " parts; use fewer or smaller repetitions",
                 "rule '" + syntax_.rules[entries_.size() - 1].name.substr(0, 100) + "'", false};
  }

  std::uint32_t node(Kind kind, std::uint32_t a, std::uint32_t b) {
    if (nodes().size() >= limits::kGrammarNodesMax) {
      full_ = true;
      return 0;
    }
    nodes().push_back({kind, a, b});
    return static_cast<std::uint32_t>(nodes().size() - 1);
  }

  std::uint32_t set_of(const Grammar::ByteSet& set) {
    const auto [entry, added] = set_ids_.try_emplace(set, static_cast<std::uint32_t>(grammar_->byte_sets_.size()));
    if (added) grammar_->byte_sets_.push_back(set);
    return entry->second;
  }

  std::uint32_t range_set(std::uint32_t low, std::uint32_t high) {
    Grammar::ByteSet set{};
    for (std::uint32_t byte = low; byte <= high; ++byte) set[byte >> 6] |= std::uint64_t{1} << (byte & 63);
    return set_of(set);
  }

  std::uint32_t emit(std::uint32_t index, std::uint32_t next) {
    // Empty expressions make no nodes, and may be repeated just as often.
    full_ = full_ || ++n_emitted_ > 8 * limits::kGrammarNodesMax;
    if (full_) return next;
    const Expression& e = syntax_.expressions[index];
    switch (e.kind) {
      case Expression::Kind::kLiteral: return literal(e, next);
      case Expression::Kind::kClass: return char_class(e, next);
      case Expression::Kind::kRule: return node(Kind::kCall, e.rule, next);
      case Expression::Kind::kSequence:
        for (std::size_t i = e.children.size(); i-- > 0;) next = emit(e.children[i], next);
        return next;
      case Expression::Kind::kChoice: return choice(e, next);
      case Expression::Kind::kRepeat: return repeat(e, next);
      case Expression::Kind::kToken: return node(Kind::kToken, e.rule, next);
      case Expression::Kind::kTokenNot: return node(Kind::kTokenNot, e.rule, next);
    }
    return next;
  }

  std::uint32_t literal(const Expression& e, std::uint32_t next) {
    for (std::size_t i = e.literal.size(); i-- > 0 && !full_;) {
      const auto byte = static_cast<std::uint8_t>(e.literal[i]);
      next = node(Kind::kBytes, range_set(byte, byte), next);
    }
    return next;
  }

  std::uint32_t char_class(const Expression& e, std::uint32_t next) {
    const auto sequences = utf8_sequences(e.negated ? complement(e.ranges) : e.ranges);
    Grammar::ByteSet single{};
    std::vector<std::uint32_t> entries;
    for (const Utf8Sequence& sequence : sequences) {
      if (full_) return next;
      if (sequence.size() == 1) {
        for (std::uint32_t b = sequence[0].first; b <= sequence[0].second; ++b) {
          single[b >> 6] |= std::uint64_t{1} << (b & 63);
        }
        continue;
      }
      std::uint32_t entry = next;
      for (std::size_t i = sequence.size(); i-- > 0;) {
        entry = node(Kind::kBytes, range_set(sequence[i].first, sequence[i].second), entry);
      }
      entries.push_back(entry);
    }
    const bool no_single = single == Grammar::ByteSet{};
    // Without any character (only surrogates were named) an empty set remains, which nothing fits.
    if (!no_single || entries.empty()) entries.push_back(node(Kind::kBytes, set_of(single), next));
    return split(entries);
  }

  std::uint32_t split(const std::vector<std::uint32_t>& entries) {
    std::uint32_t entry = entries.back();
    for (std::size_t i = entries.size() - 1; i-- > 0;) entry = node(Kind::kSplit, entries[i], entry);
    return entry;
  }

  std::uint32_t choice(const Expression& e, std::uint32_t next) {
    std::vector<std::uint32_t> entries;
    for (const std::uint32_t child : e.children) entries.push_back(emit(child, next));
    return split(entries);
  }

  //   x{2,4}: x x (x (x)?)?        x{2,}: x x x*
  std::uint32_t repeat(const Expression& e, std::uint32_t next) {
    std::uint32_t entry = next;
    if (e.most == gbnf::kNoLimit) {
      entry = node(Kind::kSplit, 0, next);
      const std::uint32_t body = emit(e.children[0], entry);
      if (!full_) nodes()[entry].a = body;
    } else {
      for (std::uint32_t i = e.least; i < e.most && !full_; ++i) {
        entry = node(Kind::kSplit, emit(e.children[0], entry), next);
      }
    }
    for (std::uint32_t i = 0; i < e.least && !full_; ++i) {
      const std::size_t before = nodes().size();
      entry = emit(e.children[0], entry);
      if (nodes().size() == before) break;  // the body is empty, however often
    }
    return entry;
  }

  // Finds, from every rule's entry, what can be reached without reading a byte; a rule that reaches a call of itself
  // would be entered without end. Linear: who waits for a rule to prove possibly empty is woken once.
  Result<void> refuse_left_recursion() {
    const std::size_t n_rules = entries_.size();
    std::vector<bool> seen(nodes().size()), empty(n_rules);
    std::vector<std::vector<std::uint32_t>> waiting(n_rules), calls(n_rules);
    std::vector<std::uint32_t> todo(entries_.begin(), entries_.end());
    while (!todo.empty()) {
      const std::uint32_t at = todo.back();
      todo.pop_back();
      if (seen[at]) continue;
      seen[at] = true;
      const Grammar::Node& n = nodes()[at];
      const std::uint32_t rule = rule_of_node_[at];
      if (n.kind == Kind::kSplit) {
        todo.push_back(n.a);
        todo.push_back(n.b);
      } else if (n.kind == Kind::kCall) {
        calls[rule].push_back(n.a);
        if (empty[n.a]) {
          todo.push_back(n.b);
        } else {
          waiting[n.a].push_back(n.b);
        }
      } else if (n.kind == Kind::kEnd && !empty[rule]) {
        empty[rule] = true;
        todo.insert(todo.end(), waiting[rule].begin(), waiting[rule].end());
      }
    }
    return refuse_cycle(calls);
  }

  Result<void> refuse_cycle(const std::vector<std::vector<std::uint32_t>>& calls) const {
    enum class Mark : std::uint8_t { kNew, kOpen, kDone };
    std::vector<Mark> marks(calls.size(), Mark::kNew);
    std::vector<std::pair<std::uint32_t, std::size_t>> path;  // rule, its next call to look at
    for (std::uint32_t first = 0; first < calls.size(); ++first) {
      if (marks[first] != Mark::kNew) continue;
      path.emplace_back(first, 0);
      marks[first] = Mark::kOpen;
      while (!path.empty()) {
        auto& [rule, next] = path.back();
        if (next == calls[rule].size()) {
          marks[rule] = Mark::kDone;
          path.pop_back();
          continue;
        }
        const std::uint32_t called = calls[rule][next++];
        if (marks[called] == Mark::kOpen) {
          const gbnf::Rule& culprit = syntax_.rules[called];
          return gbnf::error_at(text_, culprit.used_at,
                                "rule '" + culprit.name.substr(0, 100) +
                                    "' is left-recursive: it can call itself before reading anything");
        }
        if (marks[called] == Mark::kNew) {
          marks[called] = Mark::kOpen;
          path.emplace_back(called, 0);
        }
      }
    }
    return {};
  }

  const gbnf::Syntax& syntax_;
  std::string_view text_;
  std::shared_ptr<Grammar> grammar_ = std::make_shared<Grammar>();
  std::vector<std::uint32_t> entries_;       // by rule
  std::vector<std::uint32_t> rule_of_node_;  // by node
  std::map<Grammar::ByteSet, std::uint32_t> set_ids_;
  std::size_t n_emitted_ = 0;
  bool full_ = false;
};

void Grammar::number_classes() {
  class_of_.fill(0);
  n_classes_ = 1;
  for (const ByteSet& set : byte_sets_) {
    constexpr int kNone = -1;
    std::array<std::array<int, 2>, 256> refined;
    refined.fill({kNone, kNone});
    int n = 0;
    for (std::size_t byte = 0; byte < 256; ++byte) {
      int& number = refined[class_of_[byte]][set[byte >> 6] >> (byte & 63) & 1];
      if (number == kNone) number = n++;
      class_of_[byte] = static_cast<std::uint8_t>(number);
    }
    n_classes_ = static_cast<std::size_t>(n);
    if (n == 256) break;
  }
}

Result<std::shared_ptr<const Grammar>> Grammar::parse(std::string_view text, const TokenOf& token_of) {
  if (text.size() > limits::kGrammarBytesMax) {
    return Error{Code::kTooLarge,
                 "grammar has " + std::to_string(text.size()) + " bytes; the limit is " +
                     std::to_string(limits::kGrammarBytesMax),
                 "grammar", false};
  }
  auto syntax = gbnf::parse(text, token_of);
  if (!syntax) return syntax.error();
  return GrammarCompiler(*syntax, text).run();
}

}  // namespace fermata
