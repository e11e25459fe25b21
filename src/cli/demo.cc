// A guided tour in the terminal: a story is paused in mid-sentence beside two running neighbours, looked at, resumed
// among other neighbours, and compared bit for bit with the story that nobody disturbed.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/complain.h"
#include "cli/event_reader.h"
#include "cli/exit_codes.h"
#include "cli/open_engine.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "engine/chat_prompt.h"
#include "engine/llama/json_text.h"
#include "runtime/core.h"

namespace fermata::cli {
namespace {

constexpr std::int32_t kStoryTokens = 160;
constexpr std::size_t kPauseAfterTokens = 60;

const char* const kStory = "Tell me a short story about a lighthouse keeper and a fox.";
const char* const kNeighbours[] = {"List ten things to take on a long walk.", "Explain how bread is baked.",
                                   "Write a poem about winter."};

class Demo {
 public:
  Demo(Core& core, const ChatTemplate* chat) : core_(core), chat_(chat), out_(STDOUT_FILENO) {}
  Result<int> show();

 private:
  Result<Started> start(const std::string& prompt, std::uint64_t seed, std::int32_t n_tokens);
  Result<Answer> undisturbed();
  void say(const std::string& line) const { std::printf("%s\n", line.c_str()); }
  void show_pause(const PauseRecord& record) const;
  void show_inspection(const Inspection& look) const;
  bool compare(const Answer& story, const Answer& reference) const;

  Core& core_;
  const ChatTemplate* chat_;
  Style out_;
};

Result<Started> Demo::start(const std::string& prompt, std::uint64_t seed, std::int32_t n_tokens) {
  Request request;
  const Vocabulary& vocabulary = core_.vocabulary();
  if (chat_) {
    const Result<ChatPrompt> written =
        render_chat(*chat_, SpecialTexts(vocabulary.special_texts()), {{"user", prompt}});
    if (!written) return written.error();
    request.prompt = tokenize_chat(vocabulary, *written);
  } else {
    request.prompt = vocabulary.prompt_prefix();
    for (const TokenId token : vocabulary.tokenize(prompt, Markers::kPlain)) request.prompt.push_back(token);
  }
  request.sampling.seed = seed;
  request.n_tokens_max = n_tokens;
  request.sampling.ignore_eos = true;  // long enough to be paused, whatever the model would say
  return core_.submit(std::move(request));
}

Result<Answer> Demo::undisturbed() {
  Result<Started> started = start(kStory, 7, kStoryTokens);
  if (!started) return started.error();
  Answer answer;
  read_events(core_, *started, answer, {});
  if (answer.end.reason == EndReason::kError) return answer.end.error;
  return answer;
}

void Demo::show_pause(const PauseRecord& record) const {
  say("");
  say(out_.yellow("  [paused]") + " at token " + std::to_string(record.at) + ", " +
      std::to_string(record.n_bytes_sent) + " bytes sent, " + std::to_string(record.n_bytes_held) + " held back; " +
      "frozen " + std::to_string(record.reach.ms()).substr(0, 5) + " ms after the call");
}

void Demo::show_inspection(const Inspection& look) const {
  const Vocabulary& vocabulary = core_.vocabulary();
  say(out_.dim("  the last tokens           probability   entropy (nats)"));
  for (const JournalRow& row : look.last_rows)
    std::printf("    %-22s %9.1f %%   %9.2f\n", quoted(vocabulary.bytes(row.token)).c_str(),
                100.0 * std::exp(static_cast<double>(row.logprob)), static_cast<double>(row.entropy));
  say(out_.dim("  what could come next      probability"));
  for (const TokenLogprob& next : look.next)
    std::printf("    %-22s %9.1f %%\n", quoted(vocabulary.bytes(next.token)).c_str(),
                100.0 * std::exp(static_cast<double>(next.logprob)));
}

bool Demo::compare(const Answer& story, const Answer& reference) const {
  std::size_t n_equal = 0;
  const std::size_t n = std::min(story.rows.size(), reference.rows.size());
  for (std::size_t i = 0; i < n; ++i) {
    const JournalRow& a = story.rows[i];
    const JournalRow& b = reference.rows[i];
    if (a.token == b.token && a.logprob == b.logprob && a.entropy == b.entropy && a.margin == b.margin) ++n_equal;
  }
  const bool equal = n_equal == n && story.rows.size() == reference.rows.size() && story.text == reference.text;
  const std::string figures = std::to_string(n_equal) + " of " + std::to_string(reference.rows.size()) +
                              " tokens equal, with every bit of their log-probability, entropy and margin";
  say(equal ? out_.green("  [same] ") + figures : out_.red("  [DIFFERENT] ") + figures);
  return equal;
}

Result<int> Demo::show() {
  say(out_.bold("1. Undisturbed") + ": the story runs alone first, unseen, to compare with.");
  Result<Answer> reference = undisturbed();
  if (!reference) return reference.error();

  if (auto heard = flush_output(); !heard) return heard.error();
  say(out_.bold("2. Beside two neighbours") + ": the same story, same seed, while two others are answered.\n");
  std::vector<Started> neighbours;
  for (int i = 0; i < 2; ++i) {
    Result<Started> neighbour = start(kNeighbours[i], 100 + static_cast<std::uint64_t>(i), 400);
    if (!neighbour) return neighbour.error();
    neighbours.push_back(*neighbour);
  }
  Result<Started> started = start(kStory, 7, kStoryTokens);
  if (!started) return started.error();
  Answer story;
  const auto print = [](const TextEvent& piece) {
    std::fputs(printable_lines(piece.text).c_str(), stdout);
    std::fflush(stdout);
  };
  read_events(core_, *started, story, print, [](const Answer& a) { return a.rows.size() >= kPauseAfterTokens; });
  const Result<PauseRecord> paused = await(core_.pause(started->id));
  if (!paused) return paused.error();
  // What was sent before the pause was reached belongs before it.
  const std::size_t n_before = static_cast<std::size_t>(paused->n_bytes_sent);
  read_events(core_, *started, story, print, [&](const Answer& a) { return a.text.size() >= n_before; });
  show_pause(*paused);

  if (auto heard = flush_output(); !heard) return heard.error();
  say(out_.bold("\n3. Inspected") + ": looking changes nothing.");
  const Result<Inspection> look = await(core_.inspect(started->id, 6, 5));
  if (!look) return look.error();
  show_inspection(*look);

  const Result<Status> before = await(core_.status(neighbours[1].id));
  if (!before) return before.error();
  core_.cancel(neighbours[0].id);
  Result<Started> newcomer = start(kNeighbours[2], 200, 400);
  if (!newcomer) return newcomer.error();
  Answer other;
  read_events(core_, *newcomer, other, {}, [](const Answer& a) { return a.rows.size() >= 20; });
  const Result<Status> after = await(core_.status(neighbours[1].id));
  if (!after) return after.error();
  say("  meanwhile one neighbour left, another came, and the third wrote " +
      std::to_string(after->n_generated - before->n_generated) + " more tokens.");

  if (auto heard = flush_output(); !heard) return heard.error();
  say(out_.bold("\n4. Resumed") + ": the sentence goes on.\n");
  const Result<Status> resumed = await(core_.resume(started->id));
  if (!resumed) return resumed.error();
  read_events(core_, *started, story, print);
  say(out_.bold("\n\n5. Compared") + " with the undisturbed run:");
  const bool equal = compare(story, *reference);
  for (const Started& neighbour : neighbours) core_.cancel(neighbour.id);
  core_.cancel(newcomer->id);
  return equal ? kOk : kFailed;
}

int demo(const EngineFlags& flags) {
  Result<OpenedEngine> opened = open_engine(flags);
  if (!opened) return complain(opened.error());
  opened->tell_without_chat();
  const EngineInfo& info = opened->engine->info();
  std::printf("%s, %d cells; exact beside neighbours: %s (%s)\n\n", printable(info.model_name).c_str(), info.n_cells,
              info.exactness.with_neighbours ? "yes" : "no", info.exactness.why.c_str());
  const SystemClock clock;
  Core core(std::move(opened->engine), clock);
  Result<int> code = Demo(core, opened->chat.get()).show();
  return code ? *code : complain(code.error());
}

}  // namespace

Command add_demo(CLI::App& app) {
  auto flags = std::make_shared<EngineFlags>();
  CLI::App* command = app.add_subcommand("demo", "A guided tour: pause, inspect, resume, compare");
  command->footer(
      "A story is paused beside two others that run, is looked at, goes on, and is compared with the run that nobody\n"
      "disturbed. Nothing is asked. Examples:\n"
      "  fermata demo\n"
      "  fermata demo -m model.gguf\n\n" +
      std::string(kExitCodesHelp));
  flags->add_to(*command);
  return [flags](InterruptSignal&) { return demo(*flags); };
}

}  // namespace fermata::cli
