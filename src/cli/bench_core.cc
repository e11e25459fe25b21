#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/scratch_file.h"
#include "base/version.h"
#include "cli/bench_stand.h"
#include "cli/commands.h"
#include "cli/complain.h"
#include "cli/exit_codes.h"
#include "cli/flags.h"
#include "cli/open_engine.h"
#include "cli/output.h"
#include "engine/llama/checksum.h"
#include "engine/llama/doctor.h"
#include "engine/llama/gguf_file.h"
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
};

using Heads = std::vector<std::pair<std::string, BenchRow>>;

// SHA-256 of the model's file or files, as `sha256sum` prints them.
Result<std::string> digest_of(const std::string& model_path) {
  const auto files = read_model_files(model_path);
  if (!files) return files.error();
  std::string digest;
  for (const GgufFile& file : *files) {
    const Result<std::string> one = sha256_of_file(file.path());
    if (!one) return one;
    digest += (digest.empty() ? "" : "+") + *one;
  }
  return digest;
}

// What was measured, and on what.
Result<Heads> heads_of(const BenchSettings& settings, const Engine& engine) {
  const EngineInfo& info = engine.info();
  BenchRow of_engine;
  of_engine.put("model", info.model_name).put("fingerprint", info.fingerprint).put("kv", settings.engine.kv);
  of_engine.put("cells", info.n_cells)
      .put("prefill_rows", settings.limits.n_prefill_rows)
      .put("exact", info.exactness.with_neighbours ? "yes" : "no");
  BenchRow of_build;
  of_build.put("version", version());
  if (const auto* llama = dynamic_cast<const LlamaEngine*>(&engine)) {
    const Result<std::string> digest = digest_of(llama->options().model_path);
    if (!digest) return digest.error();
    of_engine.put("model_sha256", *digest);
    of_engine.put("attention", llama->attention_in_use()).put("threads", llama->options().n_threads);
    for (const auto& [name, value] : llama->fingerprint().fields)
      if (name.starts_with("engine.")) of_build.put(name.substr(7), value);
  }
  const DoctorReport::Machine machine = examine_machine().machine;
  BenchRow of_machine;
  of_machine.put("cpu", machine.cpu_name).put("cores", machine.n_cores).put("logical_cpus", machine.n_allowed);
  return Heads{{"engine", of_engine}, {"machine", of_machine}, {"build", of_build}};
}

Result<void> write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  if (!file) return Error{Code::kIo, "the result cannot be written", path, false};
  return {};
}

// Pipes and devices take what is written once and keep it.
bool is_replaceable(const std::string& path) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  return !path.empty() && (!std::filesystem::exists(status) || std::filesystem::is_regular_file(status));
}

// Whole or not at all.
Result<void> replace(const std::string& path, const std::string& text) {
  std::error_code ignored;
  Result<ScratchFile> scratch = ScratchFile::make(std::filesystem::weakly_canonical(path, ignored).string());
  if (!scratch) return scratch.error();
  if (auto written = write_text(scratch->path(), text); !written) return written;
  return scratch->put_in_place();
}

Result<void> write_once(const std::string& path, const std::string& text) {
  if (!path.empty()) return write_text(path, text);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return flush_output();
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
  if (std::optional<Error> missing = missing_default_model(settings.engine)) return *std::move(missing);
  options->n_rows_max = std::max(options->n_rows_max, settings.limits.n_prefill_rows);
  Result<std::unique_ptr<LlamaEngine>> engine = load_llama(*options);
  if (!engine) return engine.error();
  return Result<std::unique_ptr<Engine>>(*std::move(engine));
}

Result<void> bench(const BenchSettings& settings) {
  const Result<std::unique_ptr<Engine>> engine = open_for_bench(settings);
  if (!engine) return engine.error();
  const Result<Heads> heads = heads_of(settings, **engine);
  if (!heads) return heads.error();
  // Written before the first part, so that a file that cannot be is known now, and after each, so that a run that is
  // stopped was not for nothing.
  const bool keeps_up = is_replaceable(settings.json_path);
  if (keeps_up)
    if (auto written = replace(settings.json_path, bench_json(*heads, {})); !written) return written;
  const SystemClock clock;
  BenchStand stand(**engine, clock, settings.limits);
  std::set<std::string> wanted(settings.only.begin(), settings.only.end());
  if (wanted.contains("released")) wanted.insert("frozen");
  std::vector<BenchRow> rows;
  for (const auto& [name, part] : kParts) {
    if (!wanted.contains(name)) continue;
    part(stand, settings.plan, rows);
    if (keeps_up)
      if (auto written = replace(settings.json_path, bench_json(*heads, rows)); !written) return written;
  }
  return keeps_up ? Result<void>() : write_once(settings.json_path, bench_json(*heads, rows));
}

}  // namespace

Command add_bench(CLI::App& app) {
  auto settings = std::make_shared<BenchSettings>();
  settings->engine.n_ctx = 8192;
  settings->only = {"decode", "prefill", "frozen"};
  CLI::App* command = app.add_subcommand("bench", "Measure this build on this machine");
  command->require_subcommand(1);
  command->footer("Example: fermata bench core --quick");
  CLI::App* core = command->add_subcommand("core", "The engine with its core: speed, and how long a pause takes");
  core->footer(
      "Progress goes to standard error, one JSON object to standard output or FILE. Examples:\n"
      "  fermata bench core --only decode,prefill --rounds 3\n"
      "  fermata bench core --only freeze -m tiny.gguf -c 102400\n"
      "`make bench` compares with llama.cpp; docs/performance.md tells what was found.");
  BenchPlan& plan = settings->plan;
  add_path(*core, "--json", settings->json_path, "File for the result");
  core->add_option("--only", settings->only, "What to measure, with commas between; frozen and released are one")
      ->delimiter(',')
      ->type_name("decode|prefill|frozen|released|freeze")
      ->check(CLI::IsMember({"decode", "prefill", "frozen", "released", "freeze"}).description(""));
  // Before the flags that it gives other defaults, so that they have the last word.
  core->add_flag_callback(
      "--quick", [&plan] { plan = BenchPlan::quick(); }, "One round, 100 pauses");
  add_number(*core, "--rounds", plan.n_rounds, "How often each speed is measured", {1, 1000})->capture_default_str();
  add_number(*core, "--samples", plan.n_samples, "Pauses of each kind", {1, 1'000'000})->capture_default_str();
  add_number(*core, "--seconds", plan.seconds_max, "Most time for one kind of pause, and for filling the pool",
             {0.001, 1e6})
      ->capture_default_str();
  add_number(*core, "--prompt-max", plan.n_prompt_max, "Leave out speeds with longer prompts", {0, 1 << 20})
      ->capture_default_str();
  add_number(*core, "--prefill-rows", settings->limits.n_prefill_rows, "Rows of a prompt chunk when nobody waits",
             {1, 2048})
      ->capture_default_str();
  core->add_flag_callback(
      "--no-aged", [&plan] { plan.aged = false; }, "Leave out the speeds on a pool that much has passed through");
  settings->engine.add_to(*core);
  return [settings](InterruptSignal&) {
    const Result<void> done = bench(*settings);
    return done ? kOk : complain(done.error());
  };
}

}  // namespace fermata::cli
