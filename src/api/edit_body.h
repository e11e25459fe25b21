#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/openai/json.h"
#include "base/result.h"
#include "engine/vocabulary.h"
#include "generation/journal.h"
#include "generation/revision.h"

namespace fermata::api {

// A place in a generation as clients name it: {"token": 31}, the prompt included, or {"in": "completion", "byte": 120},
// or {"in": "completion", "utf16": 118}, of the raw completion, thoughts and their markers included.
struct Place {
  enum class Unit { kToken, kByte, kUtf16 };
  Unit unit = Unit::kToken;
  std::int64_t at = 0;
};

// From a place to another one, or to the end, something else is to stand.
struct Edit {
  Place from;
  std::optional<Place> to;
  std::string text;
  std::vector<TokenId> tokens;  // instead of text
};

// The body of an edit.
struct EditBody {
  std::vector<Edit> edits;
  std::optional<std::uint64_t> if_version;
  bool dry_run = false;
  bool ends_streams = false;  // that cannot take text back
};

// The errors are the client's to read.
Result<EditBody> parse_edit(std::string_view body);
// The field `edits` of an object, if it is there; also that of a fork.
std::vector<Edit> read_edits(FieldReader& fields);
// The field of this name, if it is there.
std::optional<Place> read_place(FieldReader& fields, std::string_view name);

// What an edit of a text is among tokens: those that its range touches give way to those of the text that stands there
// then, read as plain text. Takes the time of tokenising. kInvalidArgument: a place that is not there.
Result<std::vector<Splice>> splices_of(const std::vector<Edit>& edits, const Journal& journal,
                                       const Vocabulary& vocabulary);
// The token at a place: of a byte, the one that it belongs to.
Result<Position> token_at(const Place& place, const Journal& journal);

}  // namespace fermata::api
