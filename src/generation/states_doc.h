#pragma once

#include <string>

namespace fermata {

// The content of docs/states.md, from the tables of state.cc: Markdown with a Mermaid diagram.
std::string states_doc();

}  // namespace fermata
