#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace fermata {

// A GBNF grammar for the JSON texts of a schema, by llama-common's json_schema_to_grammar. The conversion can be made
// to run for ever, to recurse without end, and to accept silently what it does not know; so a schema is looked through
// before, and refused (kInvalidArgument, kTooLarge; naming json_schema and the place) if it nests too deep, has too
// long names, references that lead nowhere or round in circles, patterns that would be dropped, or too much to write.
Result<std::string> json_schema_grammar(std::string_view schema);

}  // namespace fermata
