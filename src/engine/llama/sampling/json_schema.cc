#include "engine/llama/sampling/json_schema.h"

#include <pthread.h>

#include <exception>
#include <optional>
#include <utility>

#include "base/limits.h"
#include "engine/llama/sampling/schema_check.h"
#include "json-schema-to-grammar.h"

namespace fermata {

namespace {

// Both the check and the conversion recurse with the schema, a few KB a level.
constexpr std::size_t kStackBytes = std::size_t{64} << 20;

// The conversion says it in several lines, the first of which says only that it failed.
std::string without_heading(std::string text) {
  constexpr std::string_view kHeading = "JSON schema conversion failed:\n";
  if (text.starts_with(kHeading)) text.erase(0, kHeading.size());
  while (text.ends_with('\n')) text.pop_back();
  for (auto line = text.find('\n'); line != std::string::npos; line = text.find('\n', line))
    text.replace(line, 1, "; ");
  return text;
}

Error invalid(const std::string& what) {
  return Error{Code::kGrammar, what.substr(0, 400), "json_schema", false, "json_schema"};
}

Error too_large(const std::string& what, std::size_t size) {
  return Error{Code::kTooLarge,
               "json_schema" + what + " has " + std::to_string(size) + " bytes; the limit is " +
                   std::to_string(limits::kGrammarBytesMax),
               "json_schema", false, "json_schema"};
}

Result<std::string> convert(std::string_view schema) {
  std::string_view wrong = "json_schema is no JSON: ";
  try {
    const common_json root = common_json::parse(std::string(schema));
    if (auto ok = check_schema(root); !ok) return ok.error();
    wrong = "json_schema has no grammar: ";
    std::string grammar = json_schema_to_grammar(root, true);
    if (grammar.size() > limits::kGrammarBytesMax) return too_large(" written as a grammar", grammar.size());
    return grammar;
  } catch (const std::exception& failure) {
    return invalid(std::string(wrong) + without_heading(failure.what()));
  }
}

struct Job {
  std::string_view schema;
  std::optional<Result<std::string>> result;
};

void* run_job(void* argument) {
  auto* job = static_cast<Job*>(argument);
  job->result = convert(job->schema);
  return nullptr;
}

}  // namespace

Result<std::string> json_schema_grammar(std::string_view schema) {
  if (schema.size() > limits::kGrammarBytesMax) return too_large("", schema.size());
  if (auto ok = check_json_depth(schema); !ok) return ok.error();
  Job job{schema, {}};
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  const int failure = pthread_create(&thread, &attributes, run_job, &job);
  pthread_attr_destroy(&attributes);
  if (failure != 0) return Error{Code::kBusy, "no thread to convert json_schema on; try later", "json_schema", true};
  pthread_join(thread, nullptr);
  return std::move(*job.result);
}

}  // namespace fermata
