#include "api/edit_body.h"

#include <array>
#include <limits>
#include <utility>

#include "api/control_body.h"
#include "api/openai/call_parts.h"
#include "base/limits.h"
#include "base/utf8.h"

namespace fermata::api {
namespace {

constexpr std::int64_t kPlaceMax = std::numeric_limits<std::int32_t>::max();

std::optional<Place> read_units(FieldReader& place) {
  static constexpr std::array<std::pair<std::string_view, Place::Unit>, 3> kUnits{
      {{"token", Place::Unit::kToken}, {"byte", Place::Unit::kByte}, {"utf16", Place::Unit::kUtf16}}};
  std::optional<Place> read;
  int n_units = 0;
  for (const auto& [name, unit] : kUnits) {
    if (!place.any(name)) continue;
    ++n_units;
    if (const auto at = place.integer(name, 0, kPlaceMax)) read = Place{unit, *at};
  }
  static constexpr std::string_view kWhere[] = {"completion"};
  const bool is_within = place.word("in", kWhere).has_value();
  place.refuse_unread();
  const bool needs_in = read && read->unit != Place::Unit::kToken;
  if (n_units != 1)
    place.complain("token", "or byte or utf16 must say where, and one of them alone");
  else if (read && needs_in != is_within)
    place.complain("in", needs_in ? R"(must be "completion" beside byte and utf16)" : "is for byte and utf16 alone");
  return read;
}

std::optional<Edit> read_edit(const json::value& value, const std::string& path, Complaints& complaints) {
  if (!value.is_object()) {
    complaints.add({Code::kInvalidArgument, path + " must be an object", in_words(value), false, path});
    return std::nullopt;
  }
  FieldReader fields(value.get_object(), path, complaints);
  Edit edit;
  if (const auto from = read_place(fields, "from"))
    edit.from = *from;
  else
    fields.refuse_missing("from");
  edit.to = read_place(fields, "to");
  const bool has_text = fields.any("text") != nullptr;
  if (auto text = fields.string("text", limits::kEditBodyBytesMax)) edit.text = *std::move(text);
  if (const json::array* tokens = fields.array("tokens")) {
    if (has_text) fields.complain("tokens", "and text cannot both stand there");
    for (const json::value& token : *tokens) {
      const bool is_id = token.is_int64() && token.get_int64() >= 0 && token.get_int64() <= kPlaceMax;
      if (!is_id) {
        fields.complain("tokens", "must be token ids");
        break;
      }
      edit.tokens.push_back(TokenId{static_cast<std::int32_t>(token.get_int64())});
    }
  } else if (!has_text) {
    fields.complain("text", "or tokens must say what is to stand there; \"\" deletes");
  }
  fields.refuse_unread();
  return edit;
}

Error not_there(const Place& place, std::string what, std::size_t n) {
  return {Code::kInvalidArgument, "there are only " + std::to_string(n) + " " + what,
          "asked for " + std::to_string(place.at), false, "edits"};
}

struct Utf16Place {
  std::size_t byte = 0;
  std::size_t n_units = 0;  // before it
};
// Where this UTF-16 unit of the raw completion begins, or its end if it has fewer; ill-formed bytes count as the U+FFFD
// they are shown as.
Utf16Place utf16_place(std::string_view text, std::size_t unit) {
  Utf16Place place;
  while (place.byte < text.size() && place.n_units < unit) {
    const Utf8Unit one = utf8_unit(text.substr(place.byte));
    place.n_units += one.kind == Utf8Unit::Kind::kCharacter && one.n_bytes == 4 ? 2 : 1;
    place.byte += one.n_bytes;
  }
  return place;
}

Result<std::size_t> byte_at(const Place& place, const Journal& journal) {
  const std::string_view text = journal.text();
  const auto at = static_cast<std::size_t>(place.at);
  switch (place.unit) {
    case Place::Unit::kToken:
      if (place.at > journal.size()) return not_there(place, "tokens", static_cast<std::size_t>(journal.size()));
      return journal.bytes_begin(static_cast<Position>(place.at));
    case Place::Unit::kByte:
      if (at > text.size()) return not_there(place, "bytes in the completion", text.size());
      return at;
    case Place::Unit::kUtf16: {
      const Utf16Place found = utf16_place(text, at);
      if (found.n_units >= at) return found.byte;
      return not_there(place, "UTF-16 units in the completion", found.n_units);
    }
  }
  return at;
}

bool is_token(const std::optional<Place>& place) { return !place || place->unit == Place::Unit::kToken; }

// Both ends are tokens: nothing is cut.
Result<Splice> splice_of_tokens(const Edit& edit, const Journal& journal) {
  for (const Place* place : {&edit.from, edit.to ? &*edit.to : nullptr})
    if (place && place->at > journal.size())
      return not_there(*place, "tokens", static_cast<std::size_t>(journal.size()));
  Splice splice;
  splice.begin = static_cast<Position>(edit.from.at);
  splice.end = edit.to ? static_cast<Position>(edit.to->at) : journal.size();
  return splice;
}

// A range of bytes: the tokens at its ends are cut, and what stays of them becomes part of the new text.
//
//   tokens   |The |light|house |stood|          edit of bytes [7, 12): "bulb"
//   bytes    0    4     9      15    20         gives way: |light|house |  stays: "lig" and "se "
Result<Splice> splice_of_bytes(const Edit& edit, const Journal& journal, std::string& before, std::string& after) {
  const Result<std::size_t> from = byte_at(edit.from, journal);
  if (!from) return from.error();
  const Result<std::size_t> to = edit.to ? byte_at(*edit.to, journal) : Result<std::size_t>(journal.text().size());
  if (!to) return to.error();
  if (*to < *from)
    return Error{Code::kInvalidArgument, "an edit goes from a place to a later one",
                 std::to_string(*from) + " to " + std::to_string(*to), false, "edits"};
  const std::string_view text = journal.text();
  Splice splice;
  splice.begin = *from == text.size() ? journal.size() : journal.token_at_byte(*from);
  if (splice.begin < journal.size()) {
    const std::size_t begin = journal.bytes_begin(splice.begin);
    before = text.substr(begin, *from - begin);
  }
  const bool is_insertion = *to == *from && before.empty();
  splice.end = !edit.to ? journal.size() : is_insertion ? splice.begin : journal.token_at_byte(*to - 1) + 1;
  if (edit.to && splice.end > splice.begin) {
    const std::size_t end = journal.bytes_end(splice.end - 1);
    after = text.substr(*to, end - *to);
  }
  return splice;
}

}  // namespace

std::optional<Place> read_place(FieldReader& fields, std::string_view name) {
  const json::object* object = fields.object(name);
  if (!object) return std::nullopt;
  FieldReader place(*object, fields.path_of(name), fields.complaints());
  return read_units(place);
}

std::vector<Edit> read_edits(FieldReader& fields) {
  std::vector<Edit> edits;
  const json::array* array = fields.array("edits");
  if (!array) return edits;
  if (array->size() > limits::kEditsMax) {
    fields.too_large("edits", array->size(), limits::kEditsMax, "edits");
    return edits;
  }
  for (std::size_t i = 0; i < array->size(); ++i) {
    const std::string path = fields.path_of("edits") + "[" + std::to_string(i) + "]";
    if (auto edit = read_edit((*array)[i], path, fields.complaints())) edits.push_back(*std::move(edit));
  }
  return edits;
}

Result<EditBody> parse_edit(std::string_view body) {
  const Result<json::object> object = parse_control(body, limits::kEditBodyBytesMax);
  if (!object) return object.error();
  EditBody edit;
  Complaints complaints;
  FieldReader fields(*object, "", complaints);
  static constexpr std::string_view kModes[] = {"exact", "in_place"};
  if (fields.word("mode", kModes) == 1u)
    complaints.add({Code::kUnsupported, "mode in_place is not supported yet; exact is", {}, false, "mode"});
  edit.edits = read_edits(fields);
  if (edit.edits.empty()) fields.refuse_missing("edits");
  if (const auto version = fields.integer("if_version", 0, kPlaceMax))
    edit.if_version = static_cast<std::uint64_t>(*version);
  edit.dry_run = fields.boolean("dry_run").value_or(false);
  static constexpr std::string_view kSent[] = {"refuse", "end_streams"};
  edit.ends_streams = fields.word("sent_text", kSent) == 1u;
  if (fields.boolean("measure").value_or(false))
    complaints.add(
        {Code::kUnsupported, "measure is for mode in_place, which is not supported yet", {}, false, "measure"});
  fields.refuse_unread();
  if (complaints.any()) return complaints.first();
  return edit;
}

Result<std::vector<Splice>> splices_of(const std::vector<Edit>& edits, const Journal& journal,
                                       const Vocabulary& vocabulary) {
  std::vector<Splice> splices;
  for (const Edit& edit : edits) {
    std::string before, after;
    Result<Splice> splice = is_token(edit.from) && is_token(edit.to) ? splice_of_tokens(edit, journal)
                                                                     : splice_of_bytes(edit, journal, before, after);
    if (!splice) return splice.error();
    if (edit.tokens.empty()) {
      before.append(edit.text).append(after);
      splice->tokens = vocabulary.tokenize(before, Markers::kPlain);
    } else {
      splice->tokens = vocabulary.tokenize(before, Markers::kPlain);
      splice->tokens.insert(splice->tokens.end(), edit.tokens.begin(), edit.tokens.end());
      const std::vector<TokenId> rest = vocabulary.tokenize(after, Markers::kPlain);
      splice->tokens.insert(splice->tokens.end(), rest.begin(), rest.end());
    }
    const bool in_prompt = splice->begin < journal.n_prompt();
    splice->role = in_prompt ? TokenRole::kPrompt : TokenRole::kGenerated;
    splices.push_back(*std::move(splice));
  }
  return splices;
}

Result<Position> token_at(const Place& place, const Journal& journal) {
  if (place.unit == Place::Unit::kToken) {
    if (place.at > journal.size()) return not_there(place, "tokens", static_cast<std::size_t>(journal.size()));
    return static_cast<Position>(place.at);
  }
  const Result<std::size_t> byte = byte_at(place, journal);
  if (!byte) return byte.error();
  return *byte == journal.text().size() ? journal.size() : journal.token_at_byte(*byte);
}

}  // namespace fermata::api
