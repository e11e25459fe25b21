#include "api/prompt_maker.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/limits.h"
#include "engine/chat_prompt.h"

namespace fermata::api {
namespace {

// Whoever writes a raw prompt writes its template, special tokens included. One that begins with BOS gets no other.
std::vector<TokenId> raw_prompt(const Vocabulary& vocabulary, const std::string& text) {
  std::vector<TokenId> tokens = vocabulary.tokenize(text, Markers::kParse);
  const std::vector<TokenId> prefix = vocabulary.prompt_prefix();
  const bool has_prefix = tokens.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), tokens.begin());
  if (!has_prefix) tokens.insert(tokens.begin(), prefix.begin(), prefix.end());
  return tokens;
}

// Of the body, what a generation knows by another name.
std::string field_of(const Call& call, std::string field) {
  if (field == "prompt" && call.route == Route::kChat) return "messages";
  if (field == "json_schema" && call.schema_is_format) return "response_format";
  return field;
}

}  // namespace

PromptMaker::PromptMaker(Core& core, const ChatTemplate* chat)
    : core_(core), chat_(chat), specials_(core.vocabulary().special_texts()) {
  const Vocabulary& vocabulary = core.vocabulary();
  for (std::int32_t i = 0; i < vocabulary.n_tokens(); ++i)
    n_token_bytes_max_ = std::max(n_token_bytes_max_, vocabulary.bytes(TokenId{i}).size());
  model_thinks_ = vocabulary.tokenize(kThoughtBegin, Markers::kParse).size() == 1;
}

std::size_t n_work(const Call& call) {
  std::size_t n = call.prompt_text.size() + call.prompt_tokens.size() * sizeof(TokenId);
  for (const ChatMessage& message : call.messages) n += message.content.size() + limits::kMessageWorkBytes;
  const SamplingParams& sampling = call.request.sampling;
  return n + (sampling.grammar.size() + sampling.json_schema.size()) * limits::kGrammarWork;
}

// Before anything is tokenised: no token has more bytes than the longest of the vocabulary.
Result<void> PromptMaker::check_bytes(std::size_t n_bytes, std::string_view field) const {
  const std::size_t n_tokens_min = n_bytes / n_token_bytes_max_;
  if (n_tokens_min <= static_cast<std::size_t>(core_.info().n_cells)) return {};
  return Error{Code::kContextLength,
               "prompt is too long: its " + std::to_string(n_bytes) + " bytes have more tokens than the pool (" +
                   std::to_string(core_.info().n_cells) + "); shorten it",
               "at least " + std::to_string(n_tokens_min) + " tokens", false, std::string(field)};
}

// A final message of the assistant is continued: the template's turn for the answer, then what it has.
Result<Prompt> PromptMaker::prompt_of(const Call& call) const {
  const Vocabulary& vocabulary = core_.vocabulary();
  Prompt prompt;
  if (call.route == Route::kCompletions) {
    if (const Result<void> fits = check_bytes(call.prompt_text.size(), "prompt"); !fits) return fits.error();
    prompt.tokens = call.has_prompt_tokens ? call.prompt_tokens : raw_prompt(vocabulary, call.prompt_text);
    return prompt;
  }
  if (!chat_)
    return Error{Code::kUnsupported, "this model has no chat template; use /v1/completions", {}, false, "messages"};
  std::vector<ChatMessage> messages = call.messages;
  std::string begun;
  if (call.continues_last) {
    begun = std::move(messages.back().content);
    messages.pop_back();
  }
  Result<ChatPrompt> written = render_chat(*chat_, specials_, messages);
  if (!written) {
    Error error = written.error();
    error.field = "messages";
    return error;
  }
  std::string& text = written->text;
  if (const Result<void> fits = check_bytes(text.size() + begun.size(), "messages"); !fits) return fits.error();
  prompt.tokens = tokenize_chat(vocabulary, *written);
  for (const TokenId token : vocabulary.tokenize(begun, Markers::kPlain)) prompt.tokens.push_back(token);
  text.erase(text.find_last_not_of(" \n") + 1);
  prompt.opens_thought = begun.empty() && text.ends_with(kThoughtBegin);
  return prompt;
}

Result<Generation> PromptMaker::prepare(const Call& call, Prompt& prompt) const {
  Result<Prompt> made = prompt_of(call);
  if (!made) return made.error();
  prompt = *std::move(made);
  Request request = call.request;
  request.prompt = prompt.tokens;
  Result<Generation> generation = core_.prepare(std::move(request));
  if (generation) return generation;
  Error error = std::move(generation).error();
  error.field = field_of(call, std::move(error.field));
  return error;
}

}  // namespace fermata::api
