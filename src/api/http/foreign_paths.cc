#include "api/http/foreign_paths.h"

#include <algorithm>
#include <string>

namespace fermata::api {
namespace {

constexpr ForeignPath kForeignPaths[] = {
    {"/", "this is fermata, which serves no pages: GET /v1/models says what model is here"},
    {"/completion", "POST /v1/completions is it"},
    {"/slots", "there are no slots: GET /v1/generations lists what runs, waits and is paused"},
    {"/slots/ID",
     "there are no slots: POST /v1/generations/NAME/pause and /v1/generations/NAME/resume, which keep it in memory"},
    {"/props", "GET /v1/capabilities says what is promised, GET /v1/models what is served"},
    {"/apply-template", "templates are not served: POST /v1/chat/completions uses the model's"},
    {"/infill", "infill is not served"},
    {"/embedding, /embeddings", "embeddings are not served"},
    {"/rerank, /reranking", "ranking is not served"},
    {"/responses", "OpenAI's responses are not served: POST /v1/chat/completions is"},
    {"/messages, /messages/count_tokens", "Anthropic's messages are not served: POST /v1/chat/completions is"},
    {"/chat/completions/input_tokens, /responses/input_tokens", "POST /tokenize counts the tokens of a text"},
    {"/lora-adapters", "adapters are not served"},
    {"/models/load, /models/unload", "one server has one model, all the time it runs"},
    {"/audio/transcriptions, /audio/speech, /images/generations, /images/edits", "images and sound are not served"},
    {"/moderations, /files, /batches, /fine_tuning/jobs, /assistants, /threads, /vector_stores", "it is not served"},
};

// "/a/ID" has "/a/7".
bool has(std::string_view pattern, std::string_view path) {
  constexpr std::string_view kAny = "/ID";
  if (!pattern.ends_with(kAny)) return pattern == path;
  pattern.remove_suffix(kAny.size() - 1);
  return path.starts_with(pattern) && path.size() > pattern.size() &&
         path.find('/', pattern.size()) == std::string_view::npos;
}

}  // namespace

std::span<const ForeignPath> foreign_paths() { return kForeignPaths; }

std::string_view instead_of_path(std::string_view path) {
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  if (path == "/v1") path = "/";
  if (path.starts_with("/v1/")) path.remove_prefix(3);
  for (const ForeignPath& foreign : kForeignPaths) {
    for (std::string_view rest = foreign.paths; !rest.empty();) {
      const std::size_t end = std::min(rest.find(", "), rest.size());
      if (has(rest.substr(0, end), path)) return foreign.instead;
      rest.remove_prefix(std::min(end + 2, rest.size()));
    }
  }
  return {};
}

}  // namespace fermata::api
