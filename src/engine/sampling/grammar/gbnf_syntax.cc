#include "engine/sampling/grammar/gbnf_syntax.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/limits.h"

namespace fermata::gbnf {
namespace {

constexpr std::uint32_t kCodePointMax = 0x10FFFF;

bool is_surrogate(std::uint32_t c) { return c >= 0xD800 && c <= 0xDFFF; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || is_digit(c); }

void append_utf8(std::string& out, std::uint32_t c) {
  const auto byte = [&](std::uint32_t value) { out.push_back(static_cast<char>(value)); };
  if (c < 0x80) return byte(c);
  if (c < 0x800) return byte(0xC0 | c >> 6), byte(0x80 | (c & 63));
  if (c < 0x10000) return byte(0xE0 | c >> 12), byte(0x80 | (c >> 6 & 63)), byte(0x80 | (c & 63));
  byte(0xF0 | c >> 18), byte(0x80 | (c >> 12 & 63)), byte(0x80 | (c >> 6 & 63)), byte(0x80 | (c & 63));
}

// Recursive descent. A failed step leaves error_ set and returns something harmless; the callers' loops ask failed().
class Parser {
 public:
  Parser(std::string_view text, const Grammar::TokenOf& token_of) : text_(text), token_of_(token_of) {}

  Result<Syntax> run() {
    skip_space(true);
    while (!failed() && at_ < text_.size()) rule();
    if (!failed()) check_rules();
    if (failed()) return *error_;
    return std::move(syntax_);
  }

 private:
  using Kind = Expression::Kind;

  bool failed() const { return error_.has_value(); }
  void fail_at(std::size_t place, const std::string& what) {
    if (!failed()) error_ = error_at(text_, place, what);
  }
  void fail(const std::string& what) { fail_at(at_, what); }

  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c, const std::string& what) {
    if (!take(c)) fail("expected " + what);
  }

  void skip_space(bool newlines) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n' && text_[at_] != '\r') ++at_;
      } else if (c == ' ' || c == '\t' || (newlines && (c == '\n' || c == '\r'))) {
        ++at_;
      } else {
        return;
      }
    }
  }

  std::string_view name() {
    const std::size_t begin = at_;
    while (is_word(peek())) ++at_;
    if (at_ == begin) fail("expected the name of a rule");
    return text_.substr(begin, at_ - begin);
  }

  std::uint32_t rule_of(std::string_view rule_name, std::size_t place) {
    const auto [entry, added] = rule_ids_.try_emplace(std::string(rule_name), syntax_.rules.size());
    if (added) syntax_.rules.push_back({std::string(rule_name), 0, false, place});
    return static_cast<std::uint32_t>(entry->second);
  }

  void rule() {
    const std::size_t begin = at_;
    const std::string_view rule_name = name();
    if (failed()) return;
    skip_space(false);
    if (text_.substr(at_, 3) != "::=") return fail("expected ::= after the name of a rule");
    at_ += 3;
    skip_space(true);
    const std::uint32_t id = rule_of(rule_name, begin);
    if (syntax_.rules[id].defined) return fail_at(begin, "rule '" + std::string(rule_name) + "' is defined twice");
    const std::uint32_t body = choice(0);
    if (failed()) return;
    syntax_.rules[id].body = body;
    syntax_.rules[id].defined = true;
    if (at_ < text_.size() && peek() != '\n' && peek() != '\r') return fail("expected a new line or the end");
    skip_space(true);
  }

  std::uint32_t add(Expression expression) {
    syntax_.expressions.push_back(std::move(expression));
    return static_cast<std::uint32_t>(syntax_.expressions.size() - 1);
  }

  std::uint32_t choice(std::size_t depth) {
    if (depth > limits::kGrammarNestingMax) {
      fail("parentheses nest deeper than " + std::to_string(limits::kGrammarNestingMax));
      return 0;
    }
    Expression expression{.kind = Kind::kChoice};
    expression.children.push_back(sequence(depth));
    while (!failed() && take('|')) {
      skip_space(true);
      expression.children.push_back(sequence(depth));
    }
    return expression.children.size() == 1 ? expression.children[0] : add(std::move(expression));
  }

  std::uint32_t sequence(std::size_t depth) {
    Expression expression{.kind = Kind::kSequence};
    while (!failed()) {
      const std::optional<std::uint32_t> next = item(depth);
      if (!next) break;
      expression.children.push_back(*next);
    }
    return add(std::move(expression));
  }

  // One item with its repetitions; nothing at the end of the sequence.
  std::optional<std::uint32_t> item(std::size_t depth) {
    const char c = peek();
    std::uint32_t body = 0;
    if (c == '"') {
      body = literal();
    } else if (c == '[') {
      body = char_class();
    } else if (c == '<' || c == '!') {
      body = token();
    } else if (is_word(c)) {
      const std::size_t begin = at_;
      body = rule_of(name(), begin);
      body = add({.kind = Kind::kRule, .rule = body});
    } else if (c == '(') {
      body = group(depth);
    } else if (c == '.') {
      ++at_;
      body = add({.kind = Kind::kClass, .negated = true});
    } else {
      if (c == '*' || c == '+' || c == '?' || c == '{') fail("nothing stands before this repetition");
      return std::nullopt;
    }
    skip_space(depth > 0);
    std::size_t n_repeats = 0;
    while (!failed() && repeat(body, depth)) {
      if (++n_repeats > 8) fail("more than 8 repetitions of one item");
    }
    return body;
  }

  std::uint32_t group(std::size_t depth) {
    ++at_;
    skip_space(true);
    const std::uint32_t body = choice(depth + 1);
    if (!failed()) expect(')', "')' to close this group");
    return body;
  }

  bool repeat(std::uint32_t& body, std::size_t depth) {
    std::uint32_t least = 0, most = kNoLimit;
    if (take('*')) {
    } else if (take('+')) {
      least = 1;
    } else if (take('?')) {
      most = 1;
    } else if (take('{')) {
      counts(least, most);
    } else {
      return false;
    }
    skip_space(depth > 0);
    if (!failed()) body = add({.kind = Kind::kRepeat, .least = least, .most = most, .children = {body}});
    return true;
  }

  // {n} {n,} {n,m}, after the brace.
  void counts(std::uint32_t& least, std::uint32_t& most) {
    const std::size_t begin = at_;
    skip_space(true);
    least = most = number();
    skip_space(true);
    if (take(',')) {
      skip_space(true);
      most = is_digit(peek()) ? number() : kNoLimit;
      skip_space(true);
    }
    if (!failed()) expect('}', "'}' to close this repetition");
    if (!failed() && most < least) fail_at(begin, "the repetition's least count is larger than its most");
  }

  std::uint32_t number() {
    const std::size_t begin = at_;
    std::uint64_t value = 0;
    while (is_digit(peek())) {
      value = std::min<std::uint64_t>(value * 10 + static_cast<std::uint64_t>(peek() - '0'), kNoLimit - 1);
      ++at_;
    }
    if (at_ == begin) fail("expected a number");
    return static_cast<std::uint32_t>(value);
  }

  std::uint32_t literal() {
    const std::size_t begin = at_++;
    Expression expression{.kind = Kind::kLiteral};
    while (!failed() && peek() != '"') {
      if (at_ >= text_.size()) {
        fail_at(begin, "this string is not closed");
        break;
      }
      const std::size_t place = at_;
      const std::uint32_t c = character();
      if (is_surrogate(c)) fail_at(place, "a surrogate is not a character");
      append_utf8(expression.literal, c);
    }
    ++at_;
    return add(std::move(expression));
  }

  std::uint32_t char_class() {
    const std::size_t begin = at_++;
    Expression expression{.kind = Kind::kClass};
    expression.negated = take('^');
    while (!failed() && peek() != ']') {
      if (at_ >= text_.size()) {
        fail_at(begin, "this character class is not closed");
        break;
      }
      const std::size_t place = at_;
      const std::uint32_t low = character();
      std::uint32_t high = low;
      if (peek() == '-' && peek(1) != ']') {
        ++at_;
        high = character();
      }
      if (high < low) fail_at(place, "this range ends before it begins");
      expression.ranges.emplace_back(low, high);
    }
    ++at_;
    if (!failed() && expression.ranges.empty() && !expression.negated) fail_at(begin, "this character class is empty");
    return add(std::move(expression));
  }

  // A character of a literal or class: an escape or UTF-8.
  std::uint32_t character() {
    if (at_ >= text_.size()) {
      fail("unexpected end");
      return 0;
    }
    if (take('\\')) return escape();
    const auto lead = static_cast<std::uint8_t>(text_[at_]);
    const std::size_t length = lead < 0x80   ? 1
                               : lead < 0xC2 ? 0
                               : lead < 0xE0 ? 2
                               : lead < 0xF0 ? 3
                               : lead < 0xF5 ? 4
                                             : 0;
    std::uint32_t value = length == 1 ? lead : lead & (0x7Fu >> length);
    bool sound = length > 0 && at_ + length <= text_.size();
    for (std::size_t i = 1; sound && i < length; ++i) {
      const auto byte = static_cast<std::uint8_t>(text_[at_ + i]);
      sound = (byte & 0xC0) == 0x80;
      value = value << 6 | (byte & 63);
    }
    constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    if (!sound || value < kLeast[length] || value > kCodePointMax) fail("this is not UTF-8");
    at_ += std::max<std::size_t>(length, 1);
    return value;
  }

  std::uint32_t escape() {
    const char c = peek();
    ++at_;
    switch (c) {
      case 'x': return hex(2);
      case 'u': return hex(4);
      case 'U': return hex(8);
      case 't': return '\t';
      case 'r': return '\r';
      case 'n': return '\n';
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-': return static_cast<std::uint8_t>(c);
      default: fail_at(at_ - 2, "unknown escape"); return 0;
    }
  }

  std::uint32_t hex(int n_digits) {
    const std::size_t begin = at_;
    std::uint64_t value = 0;
    for (int i = 0; i < n_digits; ++i) {
      const char c = peek();
      const int digit = is_digit(c)            ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) {
        fail("expected " + std::to_string(n_digits) + " hexadecimal digits");
        return 0;
      }
      value = value * 16 + static_cast<std::uint64_t>(digit);
      ++at_;
    }
    if (value > kCodePointMax) fail_at(begin, "there is no such code point");
    return static_cast<std::uint32_t>(value);
  }

  // <[id]>, <text>, or ! before one of them.
  std::uint32_t token() {
    Expression expression{.kind = take('!') ? Kind::kTokenNot : Kind::kToken};
    const std::size_t begin = at_;
    expect('<', "'<' of a token");
    if (failed()) return 0;
    if (take('[')) {
      expression.rule = number();
      if (!failed()) expect(']', "']' after the token's number");
      if (!failed()) expect('>', "'>' after the token");
      if (!failed() && expression.rule > INT32_MAX) fail_at(begin, "there is no such token");
      return add(std::move(expression));
    }
    const std::size_t end = text_.find('>', at_);
    if (end == std::string_view::npos) {
      fail_at(begin, "this token is not closed");
      return 0;
    }
    at_ = end + 1;
    const std::string_view token_text = text_.substr(begin, at_ - begin);
    const auto id = token_of_ ? token_of_(token_text) : std::nullopt;
    if (!id) fail_at(begin, "'" + std::string(token_text.substr(0, 40)) + "' is not one token of this model");
    expression.rule = id ? static_cast<std::uint32_t>(raw(*id)) : 0;
    return add(std::move(expression));
  }

  void check_rules() {
    for (const Rule& r : syntax_.rules) {
      if (!r.defined) return fail_at(r.used_at, "rule '" + r.name.substr(0, 100) + "' is not defined");
    }
    const auto root = rule_ids_.find("root");
    if (root == rule_ids_.end()) return fail_at(0, "there is no rule named 'root'");
    syntax_.root = static_cast<std::uint32_t>(root->second);
  }

  std::string_view text_;
  const Grammar::TokenOf& token_of_;
  std::size_t at_ = 0;
  std::optional<Error> error_;
  Syntax syntax_;
  std::map<std::string, std::size_t> rule_ids_;
};

}  // namespace

Result<Syntax> parse(std::string_view text, const Grammar::TokenOf& token_of) { return Parser(text, token_of).run(); }

Error error_at(std::string_view text, std::size_t place, const std::string& what) {
  const std::string_view before = text.substr(0, place);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t line_begin = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  std::string message =
      "grammar: line " + std::to_string(line) + ", column " + std::to_string(place - line_begin + 1) + ": " + what;
  std::string_view rest = text.substr(std::min(place, text.size()));
  rest = rest.substr(0, std::min<std::size_t>(rest.find_first_of("\r\n"), 60));
  return Error{Code::kGrammar, std::move(message), "at '" + std::string(rest) + "'", false};
}

}  // namespace fermata::gbnf
