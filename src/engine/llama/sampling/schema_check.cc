#include "engine/llama/sampling/schema_check.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/limits.h"
#include "json.h"

namespace fermata {
namespace {

constexpr std::size_t kNameBytesMax = 256;  // of a property; the conversion's regexes recurse once per byte
constexpr std::size_t kRefBytesMax = 256;
constexpr int kPatternDepthMax = 32;  // of groups in a pattern; beyond some hundred the conversion drops it
constexpr std::size_t kLevelsMax =
    2048;  // of nesting, were all references followed: kStackBytes in json_schema.cc fits it
constexpr std::uint64_t kVisitsMax = 20'000;
constexpr std::uint64_t kNameBytesTotalMax = 4'000'000;

Error bad(const std::string& place, const std::string& what) {
  return Error{Code::kGrammar, "json_schema at " + place.substr(0, 200) + ": " + what, "json_schema", false,
               "json_schema"};
}

Error too_large(const std::string& place, const std::string& what) {
  return Error{Code::kTooLarge, "json_schema at " + place.substr(0, 200) + ": " + what, "json_schema", false,
               "json_schema"};
}

// How often the conversion visits a schema and the names below a place, and the bytes of the names it builds for them,
// both relative to that place.
struct Work {
  std::uint64_t visits = 0;
  std::uint64_t bytes = 0;

  void add(const Work& other, std::uint64_t times = 1, std::uint64_t name_bytes = 0) {
    visits += other.visits * times;
    bytes += (other.bytes + other.visits * name_bytes) * times;
  }
  bool too_much() const { return visits > kVisitsMax || bytes > kNameBytesTotalMax; }
};

class SchemaCheck {
 public:
  explicit SchemaCheck(const common_json& root) : root_(root) {}

  Result<void> run() {
    Work total;
    visit(root_, "#", total);
    n_levels_ += deepest_;
    // The target of a reference is written once, wherever it is named; its own references come to the list meanwhile.
    while (!failed() && !refs_to_visit_.empty()) {
      const std::string ref = refs_to_visit_.back();
      refs_to_visit_.pop_back();
      const common_json* target = resolve(ref, ref);
      Work work;
      deepest_ = 0;
      if (target) visit(*target, ref, work);
      n_levels_ += deepest_;
      total.add(work, 1, ref.size());
      if (total.too_much() || n_levels_ > kLevelsMax) fail(too_large(ref, kTooMuch));
    }
    if (failed()) return *error_;
    return {};
  }

 private:
  static constexpr const char* kTooMuch = "the schema is too large when written out; use fewer or smaller parts";

  // Nesting of the walk, also through references of allOf.
  struct Level {
    explicit Level(SchemaCheck& owner) : check(owner) { owner.deepest_ = std::max(owner.deepest_, ++owner.depth_); }
    ~Level() { --check.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    SchemaCheck& check;
  };

  bool failed() const { return error_.has_value(); }
  void fail(Error error) {
    if (!failed()) error_ = std::move(error);
  }
  void charge(Work& work, const Work& more, std::uint64_t times, std::uint64_t name_bytes, const std::string& place) {
    work.add(more, times, name_bytes);
    if (work.too_much()) fail(too_large(place, kTooMuch));
  }

  const common_json* resolve(const std::string& ref, const std::string& place) {
    const common_json* target = &root_;
    std::size_t begin = 2;
    while (begin <= ref.size()) {
      const std::size_t end = std::min(ref.find('/', begin), ref.size());
      const std::string step = ref.substr(begin, end - begin);
      begin = end + 1;
      if (target->is_object() && target->contains(step)) {
        target = &target->at(step);
      } else if (target->is_array() && step.size() < 6 && !step.empty() &&
                 step.find_first_not_of("0123456789") == std::string::npos && std::stoul(step) < target->size()) {
        target = &target->at(std::stoul(step));
      } else {
        fail(bad(place, "$ref " + ref + " leads nowhere"));
        return nullptr;
      }
    }
    return target;
  }

  std::optional<std::string> ref_of(const common_json& schema, const std::string& place) {
    const common_json& value = schema.at("$ref");
    if (!value.is_string()) {
      fail(bad(place, "$ref is not a string"));
      return std::nullopt;
    }
    std::string ref = value.get<std::string>();
    if (ref.substr(0, 2) != "#/" || ref.size() > kRefBytesMax) {
      fail(bad(place, "$ref must be a path within the schema, #/..., of at most 256 bytes"));
      return std::nullopt;
    }
    return ref;
  }

  void visit(const common_json& schema, const std::string& place, Work& work) {
    if (failed() || !schema.is_object()) return;  // the conversion says what it misses
    const Level level(*this);
    ++work.visits;
    if (depth_ > kLevelsMax) return fail(too_large(place, kTooMuch));
    if (schema.contains("$ref")) {
      const auto ref = ref_of(schema, place);
      if (ref && known_refs_.insert(*ref).second) refs_to_visit_.push_back(*ref);
      return;
    }
    refuse_what_is_not_enforced(schema, place);
    if (schema.contains("pattern") && schema.at("pattern").is_string()) {
      if (auto ok = check_pattern(schema.at("pattern").get<std::string>(), place); !ok) fail(ok.error());
    }
    // A list of types is written once for each of them, with all that stands below.
    std::uint64_t times = 1;
    if (schema.contains("type") && schema.at("type").is_array()) times = schema.at("type").size();
    Work below;
    for (const char* list : {"oneOf", "anyOf", "prefixItems", "items"}) visit_list(schema, list, place, below);
    for (const char* one : {"items", "additionalProperties"}) {
      if (schema.contains(one) && schema.at(one).is_object()) {
        Work inner;
        visit(schema.at(one), place + "/" + one, inner);
        charge(below, inner, 1, 24, place);
      }
    }
    if (schema.contains("allOf")) components(schema.at("allOf"), place + "/allOf", below);
    properties(schema, place, below);
    charge(work, below, times, 0, place);
  }

  // Keywords that the conversion passes over: an answer that breaks them would be taken for a valid one.
  void refuse_what_is_not_enforced(const common_json& schema, const std::string& place) {
    for (const char* keyword : {"multipleOf", "not", "uniqueItems", "contains", "minProperties", "maxProperties",
                                "patternProperties", "propertyNames", "if", "then", "else", "dependentRequired",
                                "dependentSchemas", "unevaluatedProperties", "unevaluatedItems"})
      if (schema.contains(keyword)) return fail(bad(place, std::string(keyword) + " cannot be enforced; leave it out"));
    const bool is_number = schema.contains("type") && schema.at("type") == "number";
    for (const char* bound : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
      if (is_number && schema.contains(bound))
        return fail(bad(place, std::string(bound) + " can be enforced for integers only; leave it out"));
  }

  void visit_list(const common_json& schema, const char* key, const std::string& place, Work& work) {
    if (!schema.contains(key) || !schema.at(key).is_array()) return;
    std::size_t i = 0;
    for (const auto& child : schema.at(key)) {
      Work inner;
      visit(child, place + "/" + key + "/" + std::to_string(i++), inner);
      charge(work, inner, 1, 24, place);
    }
  }

  void properties(const common_json& schema, const std::string& place, Work& work) {
    if (!schema.contains("properties") || !schema.at("properties").is_object()) return;
    const std::size_t n = schema.at("properties").size();
    if (n > limits::kSchemaPropertiesMax) {
      return fail(too_large(
          place, std::to_string(n) + " properties; the limit is " + std::to_string(limits::kSchemaPropertiesMax)));
    }
    for (const auto& [name, property] : schema.at("properties").items()) {
      if (failed()) return;
      if (name.size() > kNameBytesMax) {
        return fail(too_large(place, "a property's name has " + std::to_string(name.size()) + " bytes; the limit is " +
                                         std::to_string(kNameBytesMax)));
      }
      Work inner;
      visit(property, std::string(place).append("/properties/").append(name), inner);
      // Optional properties are written in every order that leaves some out: a rule for each pair.
      inner.visits += n / 2 + 1;
      charge(work, inner, 1, name.size() + 8, place);
    }
  }

  // allOf is flattened: the properties of its parts, also behind references, are written in its own place.
  void components(const common_json& parts, const std::string& place, Work& work) {
    if (!parts.is_array()) return;
    for (const auto& part : parts) {
      if (failed()) return;
      component(part, place, work);
    }
  }

  void component(const common_json& part, const std::string& place, Work& work) {
    ++work.visits;
    if (work.too_much()) return fail(too_large(place, kTooMuch));
    if (!part.is_object()) return;
    if (part.contains("$ref")) {
      const auto ref = ref_of(part, place);
      if (!ref) return;
      if (known_refs_.insert(*ref).second) refs_to_visit_.push_back(*ref);
      if (!open_refs_.insert(*ref).second) return fail(bad(place, "allOf leads to itself through $ref " + *ref));
      if (const common_json* target = resolve(*ref, place)) component(*target, place, work);
      open_refs_.erase(*ref);
      return;
    }
    for (const char* list : {"anyOf", "oneOf"}) {
      if (part.contains(list)) components(part.at(list), place, work);
    }
    Work inner;
    visit(part, place, inner);
    charge(work, inner, 1, 0, place);
  }

  const common_json& root_;
  std::optional<Error> error_;
  std::size_t depth_ = 0, deepest_ = 0;
  std::size_t n_levels_ = 0;  // of all targets together: the conversion may nest them all
  std::set<std::string> known_refs_, open_refs_;
  std::vector<std::string> refs_to_visit_;
};

// Whether a byte can stand in a JSON string as it is.
bool is_plain(std::uint32_t c) { return c >= 0x20 && c != '"' && c != '\\'; }

// What an escape stands for; 0 (which is not plain) if that is a control character or unknown.
std::uint32_t escaped(std::string_view escape) {
  if (escape.size() > 2) return static_cast<std::uint32_t>(std::stoul(std::string(escape.substr(2)), nullptr, 16));
  return std::string_view("trn").find(escape[1]) != std::string_view::npos ? 0 : static_cast<unsigned char>(escape[1]);
}

// Bytes of an escape that both regular expressions and GBNF know; 0: none.
std::size_t escape_length(std::string_view rest) {
  if (rest.size() < 2) return 0;
  const std::size_t n_hex = rest[1] == 'x' ? 2 : rest[1] == 'u' ? 4 : rest[1] == 'U' ? 8 : 0;
  if (n_hex == 0) return std::string_view("trn\\\"[]-").find(rest[1]) != std::string_view::npos ? 2 : 0;
  if (rest.size() < 2 + n_hex) return 0;
  const auto digits = rest.substr(2, n_hex);
  return digits.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos ? 2 + n_hex : 0;
}

}  // namespace

Result<void> check_json_depth(std::string_view text) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > limits::kSchemaDepthMax) {
        return Error{Code::kTooLarge, "json_schema nests deeper than " + std::to_string(limits::kSchemaDepthMax),
                     "byte " + std::to_string(i), false, "json_schema"};
      }
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return {};
}

Result<void> check_schema(const common_json& root) { return SchemaCheck(root).run(); }

Result<void> check_pattern(std::string_view pattern, const std::string& place) {
  const auto refuse = [&](const std::string& what) {
    return bad(place, "pattern " + std::string(pattern.substr(0, 80)) + ": " + what);
  };
  if (pattern.size() < 2 || pattern.front() != '^' || pattern.back() != '$') {
    return refuse("it must begin with ^ and end with $");
  }
  const std::string_view body = pattern.substr(1, pattern.size() - 2);
  bool in_class = false;
  int n_open = 0;
  for (std::size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (c != '\\' && !is_plain(static_cast<unsigned char>(c)))
      return refuse("quotes and control characters cannot stand in a JSON string; leave them out");
    if (c == '\\') {
      const bool meta = !in_class && i + 1 < body.size() &&
                        std::string_view("^$.[]()|{}*+?").find(body[i + 1]) != std::string_view::npos;
      const std::size_t length = meta ? 2 : escape_length(body.substr(i));
      if (length == 0) {
        return refuse("the escape " + std::string(body.substr(i, 2)) +
                      " is not supported; write a class such as [0-9]");
      }
      if (!is_plain(escaped(body.substr(i, length))))
        return refuse(std::string(body.substr(i, length)) + " cannot stand in a JSON string; leave it out");
      i += length - 1;
    } else if (in_class) {
      if (c == '-' && i + 1 < body.size() && body[i + 1] != ']' && body[i - 1] != '[') {
        for (int inside = static_cast<unsigned char>(body[i - 1]); inside <= static_cast<unsigned char>(body[i + 1]);
             ++inside)
          if (!is_plain(static_cast<std::uint32_t>(inside)))
            return refuse("the range " + std::string(body.substr(i - 1, 3)) +
                          " holds a quote or a backslash; write narrower ones");
      }
      in_class = c != ']';
    } else if (c == '[') {
      if (body.substr(i, 2) == "[^") return refuse("write the characters that may stand there; [^ allows quotes");
      in_class = true;
    } else if (c == '.') {
      return refuse("write a class such as [A-Za-z0-9 ]; . allows quotes");
    } else if (c == '^' || c == '$') {
      return refuse("^ and $ can stand only at its ends");
    } else if (c == ']' || c == '}') {
      return refuse(std::string("write \\") + c + " for this character");
    } else if (c == '(' && body.substr(i, 2) == "(?" && body.substr(i, 3) != "(?:") {
      return refuse("lookaround and named groups are not supported");
    } else if (c == '(' && ++n_open > kPatternDepthMax) {
      return refuse("groups nest deeper than " + std::to_string(kPatternDepthMax));
    } else if (c == ')') {
      --n_open;
    } else if (c == '{') {
      const std::size_t end = body.find('}', i);
      if (end == std::string_view::npos) return refuse("{ is not closed");
      i = end;
    }
  }
  return {};
}

}  // namespace fermata
