#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "base/limits.h"
#include "cli/commands.h"
#include "cli/complain.h"
#include "cli/event_reader.h"
#include "cli/exit_codes.h"
#include "cli/flags.h"
#include "cli/input_file.h"
#include "cli/interrupt_signal.h"
#include "cli/open_engine.h"
#include "cli/sampling_flags.h"
#include "engine/chat_prompt.h"
#include "engine/llama/json_text.h"
#include "engine/sampling/validate.h"
#include "runtime/core.h"

namespace fermata::cli {
namespace {

struct RunSettings {
  EngineFlags engine;
  SamplingFlags sampling_flags;
  Request request;
  std::string prompt;
  std::optional<std::string> system;
  bool raw_prompt = false;
  double timeout_s = 0;
  bool verbose = false;
};

Result<std::vector<TokenId>> prompt_tokens(const RunSettings& settings, const OpenedEngine& opened) {
  const Vocabulary& vocabulary = opened.engine->vocabulary();
  if (settings.system && !opened.chat)
    return Error{Code::kInvalidArgument, "--system needs a chat template, and this model has none that works",
                 opened.no_chat.message + (opened.no_chat.detail.empty() ? "" : ": " + opened.no_chat.detail), false};
  if (!settings.raw_prompt) opened.tell_without_chat();
  if (settings.raw_prompt || !opened.chat) {
    std::vector<TokenId> tokens = vocabulary.prompt_prefix();
    for (const TokenId token : vocabulary.tokenize(settings.prompt, Markers::kPlain)) tokens.push_back(token);
    return tokens;
  }
  std::vector<ChatMessage> messages;
  if (settings.system) messages.push_back({"system", *settings.system});
  messages.push_back({"user", settings.prompt});
  const Result<ChatPrompt> prompt = render_chat(*opened.chat, SpecialTexts(vocabulary.special_texts()), messages);
  if (!prompt) return prompt.error();
  return tokenize_chat(vocabulary, *prompt);
}

void report(const Answer& answer, std::uint64_t seed, Duration took) {
  std::fprintf(stderr, "\n[%s; %d prompt tokens, %d generated in %.2f s; seed %llu]\n",
               std::string(to_string(answer.end.reason)).c_str(), answer.end.n_prompt, answer.end.n_generated,
               took.ms() / 1000, static_cast<unsigned long long>(seed));
}

// A script whose variable is unset, or whose command said nothing, wants no invented answer. White space alone is text
// only where it is continued as it is.
Result<void> read_prompt(RunSettings& settings) {
  const bool is_piped = settings.prompt == "-";
  if (is_piped) {
    Result<std::string> text = read_input("-", limits::kPromptBytesMax);
    if (!text) return text.error();
    settings.prompt = *std::move(text);
  }
  const bool is_nothing = settings.raw_prompt ? settings.prompt.empty() : is_blank(settings.prompt);
  if (!is_nothing) return {};
  const std::string what = is_piped ? "standard input is " : "the prompt is ";
  return Error{Code::kInvalidArgument,
               what + (settings.prompt.empty() ? "empty" : "nothing but white space") + ": there is nothing to answer",
               {},
               false};
}

int run(RunSettings& settings, InterruptSignal& signals) {
  if (const Result<void> read = read_prompt(settings); !read) return complain(read.error());
  // What needs no model to be refused; of tokens only the model knows how many there are.
  const Result<void> fits = validate(settings.request.sampling, std::numeric_limits<std::int32_t>::max());
  if (!fits) return complain(fits.error());
  Result<OpenedEngine> opened = open_engine(settings.engine);
  if (!opened) return complain(opened.error());
  Result<std::vector<TokenId>> tokens = prompt_tokens(settings, *opened);
  if (!tokens) return complain(tokens.error());
  settings.request.prompt = *std::move(tokens);
  if (settings.timeout_s > 0) settings.request.timeout = Duration{static_cast<std::int64_t>(settings.timeout_s * 1e9)};

  const SystemClock clock;
  Core core(std::move(opened->engine), clock);
  const std::uint64_t seed = settings.request.sampling.seed;
  const Instant begun = clock.now();
  const Result<Started> started = core.submit(std::move(settings.request));
  if (!started) return complain(started.error());
  signals.on_first([&] { core.cancel(started->id); });

  Answer answer;
  bool is_lost = false;                              // standard output is full or gone: nobody would hear the rest
  const bool is_shown = isatty(STDOUT_FILENO) == 1;  // by a terminal, which a model could make do anything
  read_events(core, *started, answer, [&](const TextEvent& piece) {
    const std::string text = is_shown ? printable_lines(piece.text) : piece.text;
    std::fwrite(text.data(), 1, text.size(), stdout);
    if (std::fflush(stdout) == 0 || is_lost) return;
    is_lost = true;
    core.cancel(started->id);
  });
  signals.leave_at_once();  // what it would call is about to go
  if (is_shown) std::fputc('\n', stdout);
  if (settings.verbose) report(answer, seed, clock.now() - begun);
  if (is_lost) return complain({Code::kIo, "the answer could not be written to standard output", {}, false});
  if (answer.silent) return complain(answer.end.error);
  if (!answer.end.error.message.empty()) complain(answer.end.error);
  const ExitCode code = exit_code_for(answer.end.reason);
  return code == kInterrupted && signals.received() != 0 ? exit_code_for_signal(signals.received()) : code;
}

}  // namespace

Command add_run(CLI::App& app) {
  auto settings = std::make_shared<RunSettings>();
  CLI::App* command = app.add_subcommand("run", "Answer one prompt on standard output");
  command->footer(
      "Examples:\n"
      "  fermata run \"Why is the sky blue?\"\n"
      "  fermata run --raw \"Once upon a time\" --temp 0 -n 50\n"
      "  fermata run -j '{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\"}}}' \"Name a city.\"\n"
      "  cat letter.txt | fermata run --system \"Summarise.\" -\n\n" +
      std::string(kExitCodesHelp));
  command
      ->add_option("prompt", settings->prompt,
                   "What to answer; - reads standard input. Nothing, or white space alone without --raw, is refused")
      ->required();
  CLI::Option* system = command->add_option_function<std::string>(
      "--system", [settings](const std::string& text) { settings->system = text; },
      "System message of the chat template");
  command->add_flag("--raw", settings->raw_prompt, "Continue the prompt as it is, without the chat template")
      ->excludes(system);
  add_number(*command, "-n,--max-tokens,--n-predict,--predict", settings->request.n_tokens_max,
             "Most tokens to generate; -1: as many as fit", {-1, limits::kTokensMax})
      ->capture_default_str();
  repeatable(command->add_option("--stop", settings->request.stop, "Ends the answer before this text; repeatable"));
  add_number(*command, "--timeout", settings->timeout_s, "Seconds of running time; 0 is no limit", {0.0, 1e6})
      ->capture_default_str();
  command->add_flag("-v,--verbose", settings->verbose, "Say afterwards how it ended");
  settings->engine.add_to(*command);
  settings->engine.add_chat_template_to(*command);
  settings->request.sampling.seed = std::random_device{}();
  settings->sampling_flags.add_to(*command, settings->request.sampling);
  return [settings](InterruptSignal& signals) { return run(*settings, signals); };
}

}  // namespace fermata::cli
