#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cli/bench_stand.h"
#include "cli/commands.h"
#include "cli/complain.h"
#include "cli/exit_codes.h"
#include "cli/open_engine.h"
#include "scheduler/plan.h"

namespace fermata::cli {
namespace {

using Part = void (*)(BenchStand&, const BenchPlan&, std::vector<BenchRow>&);
const std::vector<std::pair<std::string, Part>> kParts = {
    {"decode", bench_decode},
    {"prefill", bench_prefill},
    {"frozen", bench_interrupts},  // and released: a pause has both
    {"freeze", bench_freeze},
};

struct BenchSettings {
  EngineFlags engine;
  BenchPlan plan;
  std::string json_path;
  std::vector<std::string> only;
  PlanLimits limits;
  bool quick = false;
};

BenchRow head_of(const BenchSettings& settings, const Engine& engine) {
  const EngineInfo& info = engine.info();
  BenchRow head;
  head.put("model", info.model_name).put("fingerprint", info.fingerprint).put("kv", settings.engine.kv);
  head.put("cells", info.n_cells)
      .put("prefill_rows", settings.limits.n_prefill_rows)
      .put("exact", info.exactness.with_neighbours ? "yes" : "no");
  if (const auto* llama = dynamic_cast<const LlamaEngine*>(&engine))
    head.put("attention", llama->attention_in_use()).put("threads", llama->options().n_threads);
  return head;
}

Result<void> write(const BenchSettings& settings, const BenchRow& head, const std::vector<BenchRow>& rows) {
  std::string text = "{\"engine\": " + head.json() + ",\n \"rows\": [";
  for (std::size_t i = 0; i < rows.size(); ++i) text += (i ? ",\n  " : "\n  ") + rows[i].json();
  text += "\n]}\n";
  if (settings.json_path.empty()) {
    std::fputs(text.c_str(), stdout);
    return {};
  }
  std::ofstream file(settings.json_path);
  file << text << std::flush;
  if (!file) return Error{Code::kIo, "the result cannot be written", settings.json_path, false};
  return {};
}

// As open_engine(), with room for the chunk that was asked for.
Result<std::unique_ptr<Engine>> open_for_bench(const BenchSettings& settings) {
  if (settings.engine.engine != "llama") {
    Result<OpenedEngine> opened = open_engine(settings.engine);
    if (!opened) return opened.error();
    return std::move(opened->engine);
  }
  Result<LlamaOptions> options = llama_options(settings.engine);
  if (!options) return options.error();
  options->n_rows_max = std::max(options->n_rows_max, settings.limits.n_prefill_rows);
  Result<std::unique_ptr<LlamaEngine>> engine = load_llama(*options);
  if (!engine) return engine.error();
  return Result<std::unique_ptr<Engine>>(*std::move(engine));
}

int bench(BenchSettings& settings) {
  if (settings.quick) {
    settings.plan.n_rounds = 1;
    settings.plan.n_samples = 100;
    settings.plan.n_aging = 40;
    settings.plan.seconds_max = 30;
  }
  const Result<std::unique_ptr<Engine>> engine = open_for_bench(settings);
  if (!engine) return complain(engine.error());
  const SystemClock clock;
  BenchStand stand(**engine, clock, settings.limits);
  std::set<std::string> wanted(settings.only.begin(), settings.only.end());
  if (wanted.contains("released")) wanted.insert("frozen");
  std::vector<BenchRow> rows;
  Result<void> written;
  for (const auto& [name, part] : kParts) {
    if (!wanted.contains(name)) continue;
    part(stand, settings.plan, rows);
    // A file is there after each part, so that a run that is stopped was not for nothing.
    if (!settings.json_path.empty()) written = write(settings, head_of(settings, **engine), rows);
  }
  if (settings.json_path.empty()) written = write(settings, head_of(settings, **engine), rows);
  return written ? kOk : complain(written.error());
}

}  // namespace

Command add_bench(CLI::App& app) {
  auto settings = std::make_shared<BenchSettings>();
  settings->engine.n_ctx = 8192;
  settings->only = {"decode", "prefill", "frozen"};
  CLI::App* command = app.add_subcommand("bench", "Measure this build on this machine");
  command->require_subcommand(1);
  CLI::App* core = command->add_subcommand("core", "The engine with its core: speed, and how long a pause takes");
  core->footer(
      "Progress goes to standard error, one JSON object to standard output or FILE. Examples:\n"
      "  fermata bench core --only decode,prefill --rounds 3\n"
      "  fermata bench core --only freeze -m tiny.gguf -c 102400\n"
      "`make bench` compares with llama.cpp; docs/performance.md tells what was found.");
  core->add_option("--json", settings->json_path, "File for the result");
  core->add_option("--only", settings->only, "decode, prefill, frozen (and released), freeze")
      ->delimiter(',')
      ->check(CLI::IsMember({"decode", "prefill", "frozen", "released", "freeze"}));
  core->add_option("--rounds", settings->plan.n_rounds, "How often each speed is measured")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  core->add_option("--samples", settings->plan.n_samples, "Pauses of each kind")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  core->add_option("--seconds", settings->plan.seconds_max, "Most time for one kind of pause, and for filling the pool")
      ->capture_default_str();
  core->add_option("--prompt-max", settings->plan.n_prompt_max, "Leave out speeds with longer prompts")
      ->capture_default_str();
  core->add_option("--prefill-rows", settings->limits.n_prefill_rows, "Rows of a prompt chunk when nobody waits")
      ->check(CLI::Range(1, 2048))
      ->capture_default_str();
  core->add_flag("!--no-aged", settings->plan.aged, "Leave out the speeds on a pool that much has passed through");
  core->add_flag("--quick", settings->quick, "One round, 100 pauses");
  settings->engine.add_to(*core);
  return [settings] { return bench(*settings); };
}

}  // namespace fermata::cli
