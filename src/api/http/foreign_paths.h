#pragma once

#include <span>
#include <string_view>

namespace fermata::api {

// Paths of llama-server and OpenAI that are not ours, and what stands for them. docs/coming-from-llama-server.md has
// this table; a test compares them.
struct ForeignPath {
  std::string_view paths;    // "/embedding, /embeddings"; a segment ID stands for any
  std::string_view instead;  // half a sentence
};
std::span<const ForeignPath> foreign_paths();

// Of a path as it came, with or without /v1 and a slash at its end; empty if none of them has it.
std::string_view instead_of_path(std::string_view path);

}  // namespace fermata::api
