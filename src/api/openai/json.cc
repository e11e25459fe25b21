#include "api/openai/json.h"

#include <algorithm>
#include <array>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_stack.hpp>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/nearest.h"

namespace fermata::api {
namespace {

constexpr std::size_t kShownBytes = 40;  // of a string in an error message

// Builds the value and watches what Boost's own parser lets pass: keys that come twice, and how many values there are.
class BuildingHandler {
 public:
  static constexpr std::size_t max_object_size = limits::kJsonValuesMax;
  static constexpr std::size_t max_array_size = limits::kJsonValuesMax;
  static constexpr std::size_t max_key_size = limits::kJsonBytesMax;
  static constexpr std::size_t max_string_size = limits::kJsonBytesMax;

  json::value release() { return stack_.release(); }
  const std::string& repeated_key() const { return repeated_key_; }
  bool has_repeated_key() const { return has_repeated_key_; }
  bool has_too_many_values() const { return n_values_ > limits::kJsonValuesMax; }

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }
  bool on_object_begin(json::error_code& ec) {
    keys_.emplace_back();
    return count(ec);
  }
  bool on_object_end(std::size_t n, json::error_code&) {
    keys_.pop_back();
    stack_.push_object(n);
    return true;
  }
  bool on_array_begin(json::error_code& ec) { return count(ec); }
  bool on_array_end(std::size_t n, json::error_code&) {
    stack_.push_array(n);
    return true;
  }
  bool on_key_part(json::string_view part, std::size_t, json::error_code&) {
    key_.append(part.data(), part.size());
    stack_.push_chars(part);
    return true;
  }
  bool on_key(json::string_view part, std::size_t, json::error_code& ec) {
    key_.append(part.data(), part.size());
    if (!keys_.back().insert(key_).second) {
      has_repeated_key_ = true;
      repeated_key_ = key_;
      ec = json::error::syntax;
      return false;
    }
    key_.clear();
    stack_.push_key(part);
    return true;
  }
  bool on_string_part(json::string_view part, std::size_t, json::error_code&) {
    stack_.push_chars(part);
    return true;
  }
  bool on_string(json::string_view part, std::size_t, json::error_code& ec) {
    stack_.push_string(part);
    return count(ec);
  }
  bool on_number_part(json::string_view part, json::error_code&) {
    digits_.append(part.data(), part.size());
    return true;
  }
  bool on_int64(std::int64_t number, json::string_view, json::error_code& ec) {
    digits_.clear();
    stack_.push_int64(number);
    return count(ec);
  }
  bool on_uint64(std::uint64_t number, json::string_view, json::error_code& ec) {
    digits_.clear();
    stack_.push_uint64(number);
    return count(ec);
  }
  bool on_double(double number, json::string_view part, json::error_code& ec) {
    digits_.append(part.data(), part.size());
    // Boost's own double may be off in the last place; out of range it says what from_chars does not.
    std::from_chars(digits_.data(), digits_.data() + digits_.size(), number);
    digits_.clear();
    if (!std::isfinite(number)) {
      ec = json::error::exponent_overflow;
      return false;
    }
    stack_.push_double(number);
    return count(ec);
  }
  bool on_bool(bool value, json::error_code& ec) {
    stack_.push_bool(value);
    return count(ec);
  }
  bool on_null(json::error_code& ec) {
    stack_.push_null();
    return count(ec);
  }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }

  void begin() { stack_.reset(); }

 private:
  bool count(json::error_code& ec) {
    if (++n_values_ <= limits::kJsonValuesMax) return true;
    ec = json::error::array_too_large;
    return false;
  }

  json::value_stack stack_;
  std::vector<std::set<std::string, std::less<>>> keys_;  // of the objects that are open
  std::string digits_;                                    // of a number that came in parts
  std::string key_;
  std::string repeated_key_;
  bool has_repeated_key_ = false;
  std::size_t n_values_ = 0;
};

std::string quoted(std::string_view text) {
  std::string out;
  append_quoted(out, shortened(text));
  return out;
}

Error parse_error(const BuildingHandler& handler, const json::error_code& ec, std::size_t position) {
  const std::string at = "at byte " + std::to_string(position);
  const std::string body(kWholeBody);
  if (handler.has_repeated_key())
    return {Code::kInvalidArgument, "the body has the key " + quoted(handler.repeated_key()) + " twice in one object",
            at, false, body};
  if (handler.has_too_many_values())
    return {Code::kTooLarge, "the body has too many values; the limit is " + std::to_string(limits::kJsonValuesMax), at,
            false, body};
  if (ec == json::error::too_deep)
    return {Code::kInvalidArgument,
            "the body nests deeper than " + std::to_string(limits::kJsonDepthMax) + " objects and arrays", at, false,
            body};
  if (ec == json::error::extra_data)
    return {Code::kInvalidArgument, "the body has more than one JSON value", at, false, body};
  return {Code::kInvalidArgument, "the body is not valid JSON: " + ec.message() + " " + at, at, false, body};
}

template <class Number>
std::string text_of(Number number) {
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return {digits.data(), end};
}

void append_value(std::string& out, const json::value& value);

void append_object(std::string& out, const json::object& object) {
  out += '{';
  bool is_first = true;
  for (const auto& [key, value] : object) {
    if (!is_first) out += ',';
    is_first = false;
    append_quoted(out, {key.data(), key.size()});
    out += ':';
    append_value(out, value);
  }
  out += '}';
}

void append_array(std::string& out, const json::array& array) {
  out += '[';
  bool is_first = true;
  for (const auto& value : array) {
    if (!is_first) out += ',';
    is_first = false;
    append_value(out, value);
  }
  out += ']';
}

void append_double(std::string& out, double number) {
  if (!std::isfinite(number))
    out += "null";
  else
    out += text_of(number == 0 ? 0.0 : number);  // "-0" would be read as an integer
}

void append_value(std::string& out, const json::value& value) {
  switch (value.kind()) {
    case json::kind::null: out += "null"; return;
    case json::kind::bool_: out += value.get_bool() ? "true" : "false"; return;
    case json::kind::int64: out += text_of(value.get_int64()); return;
    case json::kind::uint64: out += text_of(value.get_uint64()); return;
    case json::kind::double_: append_double(out, value.get_double()); return;
    case json::kind::string: append_quoted(out, {value.get_string().data(), value.get_string().size()}); return;
    case json::kind::array: append_array(out, value.get_array()); return;
    case json::kind::object: append_object(out, value.get_object()); return;
  }
}

// An integer, also one that is written as 5.0 or 1e9.
std::optional<std::int64_t> as_integer(const json::value& value) {
  if (value.is_int64()) return value.get_int64();
  if (!value.is_double()) return std::nullopt;
  constexpr double kExact = 9007199254740992.0;  // 2^53: beyond it a double says no single integer
  const double number = value.get_double();
  if (number != std::floor(number) || std::fabs(number) > kExact) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

}  // namespace

Result<json::value> parse_json(std::string_view text) {
  if (text.size() > limits::kJsonBytesMax)
    return Error{
        Code::kTooLarge,
        "the body has " + std::to_string(text.size()) + " bytes; the limit is " + std::to_string(limits::kJsonBytesMax),
        {},
        false,
        std::string(kWholeBody)};
  json::parse_options options;
  options.max_depth = limits::kJsonDepthMax;
  json::basic_parser<BuildingHandler> parser(options);
  parser.handler().begin();
  json::error_code ec;
  std::size_t n_read = 0;
  try {
    n_read = parser.write_some(false, text.data(), text.size(), ec);
  } catch (const std::exception& failure) {  // of allocation
    return Error{Code::kTooLarge, "the body could not be read", failure.what(), false, std::string(kWholeBody)};
  }
  if (!ec && n_read < text.size()) ec = json::error::extra_data;
  if (ec) return parse_error(parser.handler(), ec, n_read);
  return parser.handler().release();
}

Result<json::object> parse_object(std::string_view text) {
  Result<json::value> value = parse_json(text);
  if (!value) return std::move(value).error();
  if (value->is_object()) return std::move(value->get_object());
  return Error{Code::kInvalidArgument,
               "the body must be a JSON object; it is " + in_words(*value),
               {},
               false,
               std::string(kWholeBody)};
}

std::string to_text(const json::value& value) {
  std::string out;
  append_value(out, value);
  return out;
}

void append_quoted(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; continue;
      case '\\': out += "\\\\"; continue;
      case '\n': out += "\\n"; continue;
      case '\r': out += "\\r"; continue;
      case '\t': out += "\\t"; continue;
      default: break;
    }
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

void Complaints::add(Error error) {
  if (!first_) first_ = std::move(error);
}

FieldReader::FieldReader(const json::object& object, std::string path, Complaints& complaints)
    : object_(&object), path_(std::move(path)), complaints_(&complaints) {}

std::string FieldReader::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

void FieldReader::complain(std::string_view name, std::string_view message, std::string detail) {
  const std::string path = path_of(name);
  complaints_->add({Code::kInvalidArgument, path + " " + std::string(message), std::move(detail), false, path});
}

void FieldReader::refuse_missing(std::string_view name) { complain(name, "is required"); }

void FieldReader::too_large(std::string_view name, std::size_t is, std::size_t limit, std::string_view unit) {
  const std::string path = path_of(name);
  complaints_->add(
      {Code::kTooLarge,
       path + " has " + std::to_string(is) + " " + std::string(unit) + "; the limit is " + std::to_string(limit),
       std::to_string(is) + " " + std::string(unit) + ", limit " + std::to_string(limit), false, path});
}

void FieldReader::wrong(std::string_view name, const std::string& wanted, const json::value& is) {
  const std::string what = in_words(is);
  complain(name, "must be " + wanted + "; it is " + what, "it is " + what);
}

const json::value* FieldReader::any(std::string_view name) {
  read_.emplace(name);
  const json::value* value = object_->if_contains(json::string_view(name.data(), name.size()));
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::optional<bool> FieldReader::boolean(std::string_view name) {
  const json::value* value = any(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_bool()) return value->get_bool();
  wrong(name, "true or false", *value);
  return std::nullopt;
}

std::optional<double> FieldReader::number(std::string_view name, double least, double most) {
  const json::value* value = any(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) {
    const auto number = value->to_number<double>();
    if (number >= least && number <= most) return number;
  }
  wrong(name, "a number between " + text_of(least) + " and " + text_of(most), *value);
  return std::nullopt;
}

std::optional<std::int64_t> FieldReader::integer(std::string_view name, std::int64_t least, std::int64_t most) {
  const json::value* value = any(name);
  if (value == nullptr) return std::nullopt;
  const auto number = as_integer(*value);
  if (number && *number >= least && *number <= most) return number;
  wrong(name, "an integer between " + std::to_string(least) + " and " + std::to_string(most), *value);
  return std::nullopt;
}

std::optional<std::string> FieldReader::string(std::string_view name, std::size_t n_bytes_max) {
  const json::value* value = any(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) {
    const json::string& text = value->get_string();
    if (text.size() <= n_bytes_max) return std::string(text.data(), text.size());
    too_large(name, text.size(), n_bytes_max, "bytes");
    return std::nullopt;
  }
  wrong(name, "a string", *value);
  return std::nullopt;
}

std::optional<std::size_t> FieldReader::word(std::string_view name, std::span<const std::string_view> words) {
  const json::value* value = any(name);
  if (value == nullptr) return std::nullopt;
  std::string wanted;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (value->is_string() && value->get_string() == json::string_view(words[i].data(), words[i].size())) return i;
    wanted += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + quoted(words[i]);
  }
  wrong(name, wanted, *value);
  return std::nullopt;
}

const json::object* FieldReader::object(std::string_view name) {
  const json::value* value = any(name);
  if (value == nullptr || value->is_object()) return value == nullptr ? nullptr : &value->get_object();
  wrong(name, "an object", *value);
  return nullptr;
}

const json::array* FieldReader::array(std::string_view name) {
  const json::value* value = any(name);
  if (value == nullptr || value->is_array()) return value == nullptr ? nullptr : &value->get_array();
  wrong(name, "an array", *value);
  return nullptr;
}

void FieldReader::unknown(std::string_view name, std::span<const std::string_view> known, std::string hint) {
  const std::string path = path_of(name.empty() ? "\"\"" : shortened(name));
  if (hint.empty()) {
    const std::string_view near = nearest(name, known);
    hint = near.empty() ? "leave it out" : "did you mean " + path_of(near) + "?";
  }
  complaints_->add({Code::kInvalidArgument, "there is no field " + path + "; " + hint, {}, false, path});
}

void FieldReader::refuse_unknown(std::span<const std::string_view> known, const Hint& hint) {
  for (const auto& [key, value] : *object_) {
    const std::string_view name(key.data(), key.size());
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return unknown(name, known, hint ? hint(name) : std::string());
  }
}

void FieldReader::refuse_unread() {
  for (const auto& [key, value] : *object_) {
    const std::string_view name(key.data(), key.size());
    if (read_.contains(name)) continue;
    return unknown(name, std::vector<std::string_view>(read_.begin(), read_.end()));
  }
}

std::string shortened(std::string_view text) {
  if (text.size() <= kShownBytes) return std::string(text);
  std::size_t n = kShownBytes;
  while (n > 0 && (static_cast<unsigned char>(text[n]) & 0xC0) == 0x80) --n;
  return std::string(text.substr(0, n)) + "…";
}

std::string in_words(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null: return "null";
    case json::kind::bool_: return value.get_bool() ? "true" : "false";
    case json::kind::int64:
    case json::kind::uint64:
    case json::kind::double_: return to_text(value);
    case json::kind::string: return "the string " + quoted({value.get_string().data(), value.get_string().size()});
    case json::kind::array: return "an array";
    case json::kind::object: return "an object";
  }
  return "something else";
}

}  // namespace fermata::api
