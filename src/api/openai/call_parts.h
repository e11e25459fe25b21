#pragma once

#include "api/openai/call.h"
#include "api/openai/json.h"

// The parts of parse_call(): each reads its fields, and complains to the reader's Complaints.
namespace fermata::api {

void read_messages(FieldReader& body, Call& call);
void read_prompt(FieldReader& body, Call& call);
void read_sampling(FieldReader& body, Call& call);
void read_constraint(FieldReader& body, Call& call);  // response_format, grammar, json_schema
void read_fermata(FieldReader& body, Call& call);     // after read_constraint(), and `stream`

// A name that a client gives: 1 to limits::kNameBytesMax bytes without control characters, since it may go out in a
// header.
std::optional<std::string> read_name(FieldReader& reader, std::string_view name);

}  // namespace fermata::api
