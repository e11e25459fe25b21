#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>
#include <boost/json/value.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fermata::api {

namespace json = boost::json;

// The `field` of an Error that is about a request body as a whole.
inline constexpr std::string_view kWholeBody = "body";

// One JSON text. kInvalidArgument with the byte where it goes wrong: not JSON, more than one value, not UTF-8, nested
// deeper than limits::kJsonDepthMax, the same key twice in one object (two readers would see two requests), a number
// that is none. kTooLarge (field kWholeBody) over limits::kJsonBytesMax.
Result<json::value> parse_json(std::string_view text);
// The same of a text that must be an object, or kInvalidArgument (field kWholeBody).
Result<json::object> parse_object(std::string_view text);

// A double shows as the shortest decimal that reads back as it (0.7, not 7E-1); what JSON cannot say (inf, nan) as
// null.
std::string to_text(const json::value& value);
// Appends `text` as a JSON string. Precondition: valid UTF-8.
void append_quoted(std::string& out, std::string_view text);

// What was wrong with a request: the first thing that was.
class Complaints {
 public:
  void add(Error error);
  bool any() const { return first_.has_value(); }
  const Error& first() const { return *first_; }

 private:
  std::optional<Error> first_;
};

// Typed access to the fields of one object of a request. A field of the wrong type or out of range is complained about
// with its path ("messages[2].content"), what it must be and what it is; then it reads as absent, so that the caller
// reads on and asks once, at the end. null reads as absent. The object and `complaints` must outlive the reader.
class FieldReader {
 public:
  FieldReader(const json::object& object, std::string path, Complaints& complaints);

  // Each marks the field as read.
  const json::value* any(std::string_view name);  // nullptr: absent or null
  std::optional<bool> boolean(std::string_view name);
  std::optional<double> number(std::string_view name, double least, double most);
  // 5.0 is an integer; "5" and 5.5 are not.
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t least, std::int64_t most);
  std::optional<std::string> string(std::string_view name, std::size_t n_bytes_max);
  // The index in `words` of what it says.
  std::optional<std::size_t> word(std::string_view name, std::span<const std::string_view> words);
  const json::object* object(std::string_view name);
  const json::array* array(std::string_view name);

  // As an error of this field: "NAME MESSAGE", e.g. "must not be empty".
  void complain(std::string_view name, std::string_view message, std::string detail = {});
  // "NAME is required".
  void refuse_missing(std::string_view name);
  // As kTooLarge: "NAME has IS UNIT; the limit is LIMIT".
  void too_large(std::string_view name, std::size_t is, std::size_t limit, std::string_view unit);
  void ignore(std::string_view name) { read_.emplace(name); }
  // "messages[2].content"; the name alone at the top.
  std::string path_of(std::string_view name) const;
  Complaints& complaints() { return *complaints_; }

  // Complains about the first field that is none of `known`, with the nearest as a hint; or with what `hint` says of
  // it, if that is not empty.
  using Hint = std::function<std::string(std::string_view name)>;
  void refuse_unknown(std::span<const std::string_view> known, const Hint& hint = {});
  // About the first that nobody has read; the known ones are then those that were asked for.
  void refuse_unread();

 private:
  void wrong(std::string_view name, const std::string& wanted, const json::value& is);
  void unknown(std::string_view name, std::span<const std::string_view> known, std::string hint = {});

  const json::object* object_;
  std::string path_;
  Complaints* complaints_;
  std::set<std::string, std::less<>> read_;
};

// "a number", "the string \"5\"", …: what a complaint says that a value is. Bounded.
std::string in_words(const json::value& value);
// At most so much of a text as an error message may quote.
std::string shortened(std::string_view text);

}  // namespace fermata::api
