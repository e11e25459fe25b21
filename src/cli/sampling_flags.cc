#include "cli/sampling_flags.h"

#include <CLI/CLI.hpp>
#include <limits>
#include <optional>

#include "base/limits.h"
#include "cli/flags.h"
#include "cli/input_file.h"

namespace fermata::cli {
namespace {

// CLI11 puts the flag before what these say.
std::string read_file(const std::string& path) {
  Result<std::string> text = read_input(path, limits::kGrammarBytesMax);
  if (!text)
    throw CLI::ValidationError(text.error().message + (text.error().detail.empty() ? "" : ": " + text.error().detail));
  if (is_blank(*text)) throw CLI::ValidationError(path + " is empty");
  return *std::move(text);
}

// "15043=-2.5" or "15043=-inf"
LogitBias parse_bias(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals != std::string::npos) {
    const std::string value = text.substr(equals + 1);
    const auto token = parse_number<std::int32_t>(text.substr(0, equals));
    const auto bias = value == "-inf" ? -std::numeric_limits<float>::infinity() : parse_number<float>(value);
    if (token && bias) return {TokenId{*token}, *bias};
  }
  throw CLI::ValidationError("'" + text + "' is not of the form TOKEN=BIAS, e.g. 15043=-2.5 or 2=-inf");
}

void add_truncation(CLI::App& app, SamplingParams& p) {
  const std::string group = "Sampling";
  add_number(app, "-s,--seed", p.seed, "Seed of the random numbers; equal seeds, equal answers")->group(group);
  add_number(app, "--temp,--temperature", p.temperature, "0 takes the most likely token; higher is more varied")
      ->group(group)
      ->capture_default_str();
  add_number(app, "--top-k", p.top_k, "Keep the K most likely tokens; 0 keeps all")
      ->group(group)
      ->capture_default_str();
  add_number(app, "--top-p", p.top_p, "Keep the most likely tokens up to this sum of probabilities; 1 keeps all")
      ->group(group)
      ->capture_default_str();
  add_number(app, "--min-p", p.min_p, "Keep tokens with at least this share of the best one's probability; 0 keeps all")
      ->group(group)
      ->capture_default_str();
  add_number(app, "--typical", p.typical_p, "Keep locally typical tokens up to this sum; 1 is off")
      ->group(group)
      ->capture_default_str();
  add_number(app, "--top-n-sigma", p.top_n_sigma, "Keep logits within N deviations of the best; below 0 is off")
      ->group(group)
      ->capture_default_str();
  add_number(app, "--min-keep", p.min_keep, "Truncation never leaves fewer tokens")
      ->group(group)
      ->capture_default_str();
  add_number(app, "--dynatemp-range", p.dynatemp_range, "Temperature varies by so much with entropy; 0 is off")
      ->group(group)
      ->capture_default_str();
  add_number(app, "--dynatemp-exp", p.dynatemp_exponent, "Its exponent")->group(group)->capture_default_str();
  add_number(app, "--xtc-probability", p.xtc_probability, "Chance that the top choices are left out; 0 is off")
      ->group(group)
      ->capture_default_str();
  add_number(app, "--xtc-threshold", p.xtc_threshold, "Probability from which a token is a top choice")
      ->group(group)
      ->capture_default_str();
  add_number(app, "--mirostat", p.mirostat, "Aim at a constant surprise: 0 off, 1, 2 its versions")
      ->group(group)
      ->capture_default_str();
  add_number(app, "--mirostat-ent", p.mirostat_tau, "Mirostat's target surprise")->group(group)->capture_default_str();
  add_number(app, "--mirostat-lr", p.mirostat_eta, "Mirostat's learning rate")->group(group)->capture_default_str();
  add_number(app, "--adaptive-target", p.adaptive_target, "Probability that chosen tokens should have; below 0 is off")
      ->group(group)
      ->capture_default_str();
  add_number(app, "--adaptive-decay", p.adaptive_decay, "How slowly it forgets")->group(group)->capture_default_str();
}

void add_penalties(CLI::App& app, SamplingParams& p) {
  const std::string group = "Penalties";
  add_number(app, "--repeat-last-n", p.repeat_last_n, "Tokens looked back at; 0 is off, -1 all")
      ->group(group)
      ->capture_default_str();
  add_number(app, "--repeat-penalty", p.repeat_penalty, "Divides the logits of repeated tokens; 1 is off")
      ->group(group)
      ->capture_default_str();
  add_number(app, "--frequency-penalty", p.frequency_penalty, "Subtracted once per occurrence")
      ->group(group)
      ->capture_default_str();
  add_number(app, "--presence-penalty", p.presence_penalty, "Subtracted once if present")
      ->group(group)
      ->capture_default_str();
  add_number(app, "--dry-multiplier", p.dry_multiplier, "Strength of the DRY penalty on repeated sequences; 0 is off")
      ->group(group)
      ->capture_default_str();
  add_number(app, "--dry-base", p.dry_base, "DRY's growth with length")->group(group)->capture_default_str();
  add_number(app, "--dry-allowed-length", p.dry_allowed_length, "Repeated sequences up to this length are free")
      ->group(group)
      ->capture_default_str();
  add_number(app, "--dry-penalty-last-n", p.dry_penalty_last_n, "Tokens DRY looks back at; 0 is off, -1 all")
      ->group(group)
      ->capture_default_str();
  repeatable(app.add_option("--dry-sequence-breaker", p.dry_sequence_breakers,
                            "Text that ends a repeated sequence; repeatable"))
      ->group(group);
}

}  // namespace

void SamplingFlags::add_to(CLI::App& app, SamplingParams& p) {
  add_truncation(app, p);
  add_penalties(app, p);
  const std::string group = "Constraints";
  repeatable(app.add_option("--logit-bias", logit_bias_,
                            "Added to the logit of a token, by its id; -inf forbids it; repeatable"))
      ->group(group)
      ->type_name("TOKEN=BIAS")
      ->each([&p](const std::string& text) { p.logit_bias.push_back(parse_bias(text)); });
  app.add_flag("--ignore-eos", p.ignore_eos, "Never end by itself")->group(group);
  auto* grammar = add_text(app, "--grammar", p.grammar, "GBNF grammar that the answer must follow")->group(group);
  auto* grammar_file = app.add_option("--grammar-file", grammar_file_, "The same, from a file; - is standard input")
                           ->group(group)
                           ->type_name(std::string(kPathType))
                           ->excludes(grammar);
  grammar_file->each([&p](const std::string& path) { p.grammar = read_file(path); });
  auto* schema = add_text(app, "-j,--json-schema", p.json_schema, "JSON schema that the answer must follow")
                     ->group(group)
                     ->excludes(grammar)
                     ->excludes(grammar_file);
  app.add_option("--json-schema-file", schema_file_, "The same, from a file; - is standard input")
      ->group(group)
      ->type_name(std::string(kPathType))
      ->excludes(grammar)
      ->excludes(grammar_file)
      ->excludes(schema)
      ->each([&p](const std::string& path) { p.json_schema = read_file(path); });
}

}  // namespace fermata::cli
