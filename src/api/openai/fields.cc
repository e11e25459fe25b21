#include "api/openai/fields.h"

#include <array>

namespace fermata::api {
namespace {

using P = SamplingParams;
using W = Field::Where;
constexpr auto kHarmless = Treatment::kHarmless;
constexpr auto kRefused = Treatment::kRefused;

constexpr double kInt32Max = 2147483647;
constexpr double kWindowMax = 8192;  // limits::kHistoryTokensMax

constexpr Field number(std::string_view name, Field::Member member, double least, double most, std::string_view example,
                       std::string_view note) {
  return {.name = name, .note = note, .example = example, .member = member, .least = least, .most = most};
}

// Ranges are those of engine/sampling/validate.cc; a test holds the two together.
constexpr std::array kFields{
    // --- the prompt
    Field{.name = "model",
          .note = "the served model's name or one of its aliases, not empty; absent: that one",
          .example = R"("m")"},
    Field{.name = "messages",
          .where = W::kChat,
          .note = "roles system, developer (as system), user, assistant; content a string or text parts, which count "
                  "as their concatenation; two turns of one role go to the template as they are; a final assistant "
                  "message is continued; parts of other kinds, tool messages: 400",
          .example = R"([{"role": "user", "content": "Hi"}])"},
    Field{.name = "continue_final_message",
          .where = W::kChat,
          .note = "true needs a final assistant message, false none: one that is there is always continued",
          .example = "false"},
    Field{.name = "add_generation_prompt",
          .where = W::kChat,
          .note = "false needs a final assistant message",
          .example = "true"},
    Field{.name = "prompt",
          .where = W::kCompletions,
          .note = "a string, token ids, or an array with one of these",
          .example = R"("Once")"},
    // --- length and stopping
    Field{.name = "max_tokens",
          .note = "-1 or absent: until the context is full; 0: the prompt is computed, nothing else",
          .example = "16"},
    Field{.name = "max_completion_tokens", .note = "", .example = "16", .same_as = "max_tokens"},
    Field{.name = "n_predict", .note = "", .example = "16", .same_as = "max_tokens"},
    Field{.name = "stop", .note = "a string or up to 16; not part of the answer", .example = R"(["\n\n"])"},
    Field{.name = "ignore_eos", .note = "end-of-generation tokens are never chosen", .example = "true"},
    // --- sampling
    Field{.name = "seed",
          .note = "0 to 2^64-1; absent, null or -1: drawn, and told in `fermata.seed` of the answer",
          .example = "7"},
    number("temperature", &P::temperature, 0, 100, "0.7", "0: always the most likely token"),
    number("dynatemp_range", &P::dynatemp_range, 0, 100, "0.5", "0: off"),
    number("dynatemp_exponent", &P::dynatemp_exponent, 0, 100, "1", ""),
    number("top_k", &P::top_k, -1, kInt32Max, "40", "0 or -1: off"),
    number("top_p", &P::top_p, 0, 1, "0.9", "1: off"),
    number("min_p", &P::min_p, 0, 1, "0.1", "0: off"),
    number("typical_p", &P::typical_p, 0, 1, "0.9", "1: off"),
    number("top_n_sigma", &P::top_n_sigma, -1000, 1000, "2", "below 0: off"),
    Field{.name = "min_keep",
          .note = "truncation never leaves fewer tokens; no more than the vocabulary has",
          .example = "1",
          .member = &P::min_keep,
          .least = 0,
          .most = kInt32Max},
    number("xtc_probability", &P::xtc_probability, 0, 1, "0.5", "0: off"),
    number("xtc_threshold", &P::xtc_threshold, 0, 1, "0.1", ""),
    number("repeat_last_n", &P::repeat_last_n, -1, kWindowMax, "64", "0: off; -1: everything so far"),
    number("repeat_penalty", &P::repeat_penalty, 0.01, 100, "1.1", "1: off"),
    Field{.name = "repetition_penalty",
          .note = "",
          .example = "1.1",
          .member = &P::repeat_penalty,
          .least = 0.01,
          .most = 100,
          .same_as = "repeat_penalty"},
    number("frequency_penalty", &P::frequency_penalty, -100, 100, "0.5", "0: off"),
    number("presence_penalty", &P::presence_penalty, -100, 100, "0.5", "0: off"),
    number("dry_multiplier", &P::dry_multiplier, 0, 100, "0.8", "0: off"),
    number("dry_base", &P::dry_base, 1, 100, "1.75", ""),
    number("dry_allowed_length", &P::dry_allowed_length, 0, kWindowMax, "2", ""),
    number("dry_penalty_last_n", &P::dry_penalty_last_n, -1, kWindowMax, "-1", "0: off; -1: everything so far"),
    Field{.name = "dry_sequence_breakers", .note = "up to 16 strings of 1 to 40 bytes", .example = R"(["\n"])"},
    number("mirostat", &P::mirostat, 0, 2, "2", "0: off; replaces the truncating samplers and XTC"),
    number("mirostat_tau", &P::mirostat_tau, 0, 100, "5", ""),
    number("mirostat_eta", &P::mirostat_eta, 0, 1, "0.1", ""),
    number("adaptive_target", &P::adaptive_target, -1, 1, "0.5", "below 0: off"),
    number("adaptive_decay", &P::adaptive_decay, 0, 0.99, "0.9", ""),
    Field{.name = "logit_bias",
          .note = "`{\"15043\": -1.5}` or `[[15043, -1.5], [2, false]]`; false forbids the token; ids only, no text",
          .example = R"({"5": -1.5})"},
    // --- constraints
    Field{.name = "response_format",
          .note = "text, json_object, json_schema (always strict); not with grammar",
          .example = R"({"type": "json_object"})"},
    Field{.name = "grammar", .note = "GBNF", .example = R"("root ::= \"a\"")"},
    Field{.name = "json_schema", .note = "a schema, as in response_format", .example = R"({"type": "object"})"},
    // --- what comes back
    Field{.name = "stream", .note = "server-sent events", .example = "true"},
    Field{.name = "stream_options", .note = "only with stream", .example = "null"},
    Field{.name = "stream_options.include_usage",
          .note = "one more chunk, with usage, before the end; also after an interrupt",
          .example = "true"},
    Field{.name = "stream_options.include_obfuscation",
          .treatment = kHarmless,
          .note = "nothing is padded",
          .example = "false"},
    Field{.name = "logprobs",
          .where = W::kChat,
          .note = "true or false; of the raw softmax, before any sampler",
          .example = "true"},
    Field{.name = "top_logprobs", .where = W::kChat, .note = "0 to 20; needs logprobs", .example = "null"},
    Field{.name = "logprobs", .where = W::kCompletions, .note = "0 to 5; null: none", .example = "2"},
    Field{.name = "n_probs", .note = "0 to 20: log-probabilities with so many alternatives; 0: none", .example = "2"},
    // --- ours
    Field{.name = "fermata", .note = "an object; all of it may be absent", .example = "{}"},
    Field{.name = "fermata.session", .note = "at most one generation of a session runs", .example = R"("s")"},
    Field{.name = "fermata.on_new_message",
          .note = "what a new message does to what its session runs: cancel (default), pause, queue",
          .example = R"("queue")"},
    Field{.name = "fermata.on_pause", .note = "hold, return", .example = R"("hold")"},
    Field{.name = "fermata.allow_partial",
          .note = "on_pause return may cut a JSON answer: needed with a schema",
          .example = "true"},
    Field{.name = "fermata.on_disconnect", .note = "cancel, pause, continue", .example = R"("pause")"},
    Field{.name = "fermata.pause_at", .note = "pause when so many tokens are generated", .example = "0"},
    Field{.name = "fermata.timeout_ms", .note = "of running time", .example = "60000"},
    Field{.name = "fermata.priority", .note = "-1000 to 1000, larger is sooner", .example = "1"},
    Field{.name = "fermata.client_id", .note = "names the request before its id is known", .example = R"("c")"},
    Field{.name = "fermata.idempotency_key", .note = "as the header Idempotency-Key", .example = R"("k")"},
    Field{.name = "fermata.tags", .note = "up to 16", .example = R"(["a"])"},
    Field{.name = "fermata.metadata", .note = "an object, up to 16 KiB; comes back with the record", .example = "{}"},
    Field{.name = "fermata.stream_events", .note = "pauses are told of in the stream", .example = "false"},
    // --- harmless
    Field{.name = "user", .treatment = kHarmless, .note = "not kept", .example = R"("u")"},
    Field{.name = "metadata", .treatment = kHarmless, .note = "not kept; see fermata.metadata", .example = "{}"},
    Field{.name = "service_tier", .treatment = kHarmless, .note = "there is one tier", .example = R"("auto")"},
    Field{.name = "safety_identifier", .treatment = kHarmless, .note = "not kept", .example = R"("u")"},
    Field{
        .name = "prompt_cache_key", .treatment = kHarmless, .note = "prefixes are found without", .example = R"("k")"},
    Field{.name = "prompt_cache_retention", .treatment = kHarmless, .note = "likewise", .example = R"("in_memory")"},
    Field{.name = "cache_prompt", .treatment = kHarmless, .note = "a cached prefix changes no bit", .example = "true"},
    Field{.name = "parallel_tool_calls", .treatment = kHarmless, .note = "there are no tools yet", .example = "true"},
    Field{.name = "n_keep", .treatment = kHarmless, .note = "the context is never shifted", .example = "0"},
    Field{.name = "n_discard", .treatment = kHarmless, .note = "likewise", .example = "0"},
    // --- refused for now
    Field{.name = "n", .treatment = kRefused, .note = "only one choice so far", .example = "1", .neutral = "1"},
    Field{.name = "n_cmpl", .treatment = kRefused, .note = "only one choice so far", .example = "1", .neutral = "1"},
    Field{.name = "tools", .treatment = kRefused, .note = "no tools so far", .example = "[]", .neutral = "[]"},
    Field{.name = "tool_choice",
          .treatment = kRefused,
          .note = "no tools so far",
          .example = R"("none")",
          .neutral = R"("none"|"auto")"},
    Field{.name = "functions", .treatment = kRefused, .note = "no tools so far", .example = "[]", .neutral = "[]"},
    Field{.name = "function_call",
          .treatment = kRefused,
          .note = "no tools so far",
          .example = R"("none")",
          .neutral = R"("none"|"auto")"},
    Field{.name = "parse_tool_calls",
          .treatment = kRefused,
          .note = "no tools so far",
          .example = "false",
          .neutral = "false"},
    Field{.name = "adapters", .treatment = kRefused, .note = "no adapters so far", .example = "[]", .neutral = "[]"},
    Field{.name = "lora", .treatment = kRefused, .note = "no adapters so far", .example = "[]", .neutral = "[]"},
    // --- refused: it would change the answer, and does not exist here
    Field{.name = "store", .treatment = kRefused, .note = "nothing is stored", .example = "false", .neutral = "false"},
    Field{.name = "modalities",
          .where = W::kChat,
          .treatment = kRefused,
          .note = "answers are text",
          .example = R"(["text"])",
          .neutral = R"(["text"])"},
    Field{.name = "audio", .where = W::kChat, .treatment = kRefused, .note = "answers are text", .example = "null"},
    Field{.name = "prediction",
          .where = W::kChat,
          .treatment = kRefused,
          .note = "there are no predicted outputs",
          .example = "null"},
    Field{.name = "web_search_options",
          .where = W::kChat,
          .treatment = kRefused,
          .note = "there is no web search",
          .example = "null"},
    Field{.name = "verbosity",
          .where = W::kChat,
          .treatment = kRefused,
          .note = "say it in the prompt",
          .example = R"("medium")",
          .neutral = R"("medium")"},
    Field{.name = "reasoning_effort",
          .where = W::kChat,
          .treatment = kRefused,
          .note = "the model has no such dial",
          .example = "null"},
    Field{.name = "reasoning_format",
          .treatment = kRefused,
          .note = "a thought goes out as reasoning_content",
          .example = R"("auto")",
          .neutral = R"("auto"|"deepseek")"},
    Field{.name = "reasoning_control",
          .treatment = kRefused,
          .note = "there is none",
          .example = "false",
          .neutral = "false"},
    Field{.name = "reasoning_budget_tokens",
          .treatment = kRefused,
          .note = "there is no budget",
          .example = "-1",
          .neutral = "-1"},
    Field{.name = "thinking_budget_tokens",
          .treatment = kRefused,
          .note = "there is no budget",
          .example = "-1",
          .neutral = "-1"},
    Field{.name = "chat_template",
          .where = W::kChat,
          .treatment = kRefused,
          .note = "the template is the operator's",
          .example = "null"},
    Field{.name = "chat_template_kwargs",
          .where = W::kChat,
          .treatment = kRefused,
          .note = "the template is the operator's",
          .example = "{}",
          .neutral = "{}"},
    Field{.name = "best_of",
          .where = W::kCompletions,
          .treatment = kRefused,
          .note = "one completion is made",
          .example = "1",
          .neutral = "1"},
    Field{.name = "echo",
          .where = W::kCompletions,
          .treatment = kRefused,
          .note = "the prompt is not echoed",
          .example = "false",
          .neutral = "false"},
    Field{.name = "suffix",
          .where = W::kCompletions,
          .treatment = kRefused,
          .note = "there is no infill",
          .example = R"("")",
          .neutral = R"("")"},
    Field{.name = "samplers",
          .treatment = kRefused,
          .note = "their order is fixed, as llama.cpp has it; a number of its own turns one off",
          .example = "null",
          .neutral = R"(["penalties","dry","top_n_sigma","top_k","typ_p","top_p","min_p","xtc","temperature"])"},
    Field{.name = "backend_sampling",
          .treatment = kRefused,
          .note = "sampling runs on the CPU",
          .example = "false",
          .neutral = "false"},
    Field{.name = "post_sampling_probs",
          .treatment = kRefused,
          .note = "log-probabilities are those of the raw softmax",
          .example = "false",
          .neutral = "false"},
    Field{.name = "grammar_lazy",
          .treatment = kRefused,
          .note = "a grammar holds from the first token",
          .example = "false",
          .neutral = "false"},
    Field{.name = "grammar_triggers",
          .treatment = kRefused,
          .note = "a grammar holds from the first token",
          .example = "[]",
          .neutral = "[]"},
    Field{.name = "preserved_tokens",
          .treatment = kRefused,
          .note = "the tokeniser is the model's",
          .example = "[]",
          .neutral = "[]"},
    Field{.name = "t_max_predict_ms",
          .treatment = kRefused,
          .note = "use fermata.timeout_ms",
          .example = "-1",
          .neutral = "-1"},
    Field{.name = "id_slot", .treatment = kRefused, .note = "there are no slots", .example = "-1", .neutral = "-1"},
    Field{.name = "n_indent", .treatment = kRefused, .note = "use grammar", .example = "0", .neutral = "0"},
    Field{.name = "n_cache_reuse",
          .treatment = kRefused,
          .note = "it would not be exact",
          .example = "0",
          .neutral = "0"},
    Field{.name = "response_fields",
          .treatment = kRefused,
          .note = "answers are whole",
          .example = "[]",
          .neutral = "[]"},
    Field{.name = "return_tokens",
          .treatment = kRefused,
          .note = "ask for the tokens of the generation",
          .example = "false",
          .neutral = "false"},
    Field{.name = "return_progress",
          .treatment = kRefused,
          .note = "there is no progress in answers; GET /v1/generations/NAME has it",
          .example = "false",
          .neutral = "false"},
    Field{.name = "timings_per_token",
          .treatment = kRefused,
          .note = "there are no timings in answers; /metrics has them",
          .example = "false",
          .neutral = "false"},
    Field{.name = "verbose",
          .treatment = kRefused,
          .note = "nothing of how it was made is in answers; GET /v1/generations/NAME has it",
          .example = "false",
          .neutral = "false"},
};

std::string_view word_of(Treatment treatment) {
  switch (treatment) {
    case Treatment::kEnforced: return "enforced";
    case Treatment::kHarmless: return "harmless";
    case Treatment::kRefused: return "refused";
  }
  return "";
}

std::string_view word_of(Field::Where where) {
  switch (where) {
    case W::kChat: return "chat";
    case W::kCompletions: return "completions";
    case W::kBoth: return "both";
  }
  return "";
}

std::string digits(double number) {
  std::string text = std::to_string(number);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

std::span<const Field> fields() { return kFields; }

bool is_on(const Field& field, Route route) {
  return (field.where & (route == Route::kChat ? W::kChat : W::kCompletions)) != 0;
}

std::string meaning_of(const Field& field) {
  std::string out;
  const auto add = [&out](const std::string& part) { out += (out.empty() || part.empty() ? "" : "; ") + part; };
  if (!field.same_as.empty()) add("another name of `" + std::string(field.same_as) + "`; both only with one value");
  if (field.member.index() != 0 && field.same_as.empty()) add(digits(field.least) + " to " + digits(field.most));
  add(std::string(field.note));
  if (field.treatment == Treatment::kRefused) {
    std::string accepted = "null";
    for (const char c : field.neutral) {
      if (accepted == "null") accepted = "null, `";
      accepted += c == '|' ? "`, `" : std::string(1, c);
    }
    add("accepted: " + accepted + (field.neutral.empty() ? "" : "`"));
  }
  return out;
}

std::string fields_table() {
  std::string out = "| field | route | | |\n|---|---|---|---|\n";
  for (const Field& field : kFields)
    out += "| `" + std::string(field.name) + "` | " + std::string(word_of(field.where)) + " | " +
           std::string(word_of(field.treatment)) + " | " + meaning_of(field) + " |\n";
  return out;
}

}  // namespace fermata::api
