#include "server/metrics.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "base/version.h"
#include "runtime/core.h"
#include "server/metric_families.h"
#include "server/process_figures.h"

namespace fermata {
namespace {

using api::Dossier;
using api::LogEntry;
using Labels = MetricFamilies::Labels;

std::vector<double> seconds_of_waiting() {
  return {0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300};
}
std::vector<double> seconds_of_tokens() {
  return {0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 5};
}
std::vector<double> seconds_of_pauses() { return {0.001, 0.01, 0.1, 1, 10, 60, 600, 3600, 86400}; }
std::vector<double> token_counts() { return {1, 4, 16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 32768, 131072}; }

Labels one(std::string name, std::string_view value) { return {{std::move(name), std::string(value)}}; }

void add_steps(MetricFamilies& families, const LoopStats& s) {
  const auto n_done = static_cast<double>(s.decode.seconds.snapshot().n() + s.prefill.seconds.snapshot().n());
  constexpr std::string_view kSteps = "Steps of the engine that ended.";
  families.counter("fermata_steps_total", kSteps, n_done, one("outcome", "done"));
  families.counter("fermata_steps_total", kSteps, static_cast<double>(s.n_steps_aborted.load()),
                   one("outcome", "aborted"));
  families.counter("fermata_steps_total", kSteps, static_cast<double>(s.n_steps_failed.load()),
                   one("outcome", "failed"));
  constexpr std::string_view kSeconds = "Time of a step that was done.";
  families.histogram("fermata_step_seconds", kSeconds, s.decode.seconds, one("kind", "decode"));
  families.histogram("fermata_step_seconds", kSeconds, s.prefill.seconds, one("kind", "prefill"));
  constexpr std::string_view kRows = "Rows of a step that was done: tokens that it computed.";
  families.histogram("fermata_step_rows", kRows, s.decode.rows, one("kind", "decode"));
  families.histogram("fermata_step_rows", kRows, s.prefill.rows, one("kind", "prefill"));
}

void add_interrupts(MetricFamilies& families, const LoopStats& s) {
  for (std::size_t i = 0; i < kInterruptClasses; ++i)
    families.histogram("fermata_frozen_seconds",
                       "From the call for a pause until no further token is sampled and all can be read.", s.frozen[i],
                       one("class", to_string(static_cast<InterruptClass>(i))));
  for (std::size_t i = 0; i < kInterruptClasses; ++i)
    families.histogram("fermata_released_seconds",
                       "From the call for a pause until the step in flight, if any, had ended.", s.released[i],
                       one("class", to_string(static_cast<InterruptClass>(i))));
}

void add_pool(MetricFamilies& families, const LoopStats& s, std::int32_t n_cells) {
  const double n_free = s.n_cells_free.load();
  const double n_cached = s.n_cells_cached.load();
  constexpr std::string_view kCells = "Cells of the KV pool, by who has them.";
  families.gauge("fermata_kv_cells", kCells, std::max(0.0, n_cells - n_free - n_cached), one("use", "live"));
  families.gauge("fermata_kv_cells", kCells, n_cached, one("use", "cached"));
  families.gauge("fermata_kv_cells", kCells, n_free, one("use", "free"));
  constexpr std::string_view kIds = "Sequence ids of the KV pool that no generation has.";
  families.gauge("fermata_sequence_ids", kIds, s.n_seqs_cached.load(), one("use", "cached"));
  families.gauge("fermata_sequence_ids", kIds, s.n_seqs_free.load(), one("use", "free"));
  const auto count = [&](std::string_view name, std::string_view help, const std::atomic<std::uint64_t>& value) {
    families.counter(name, help, static_cast<double>(value.load()));
  };
  count("fermata_evictions_total", "Cached sequences that had to go.", s.n_evictions);
  count("fermata_preemptions_total", "Running generations that gave way to others.", s.n_preempted);
  count("fermata_parked_total", "Paused generations that gave up their cells.", s.n_parked);
  count("fermata_pages_out_total", "Pages of keys and values moved out of the pool.", s.n_pages_out);
  count("fermata_pages_in_total", "Pages of keys and values moved into the pool.", s.n_pages_in);
  count("fermata_pages_dropped_total", "Generations whose pages found no place: they are computed again.",
        s.n_pages_dropped);
}

void add_model(MetricFamilies& families, const std::string& name, const EngineInfo& info) {
  families.gauge("fermata_model_info", "Always 1; the labels say what is served.", 1,
                 {{"model", name}, {"fingerprint", info.fingerprint}});
  constexpr std::string_view kExact = "1 if the self-test found tokens to be the same bits in this company, else 0.";
  families.gauge("fermata_exact", kExact, info.exactness.alone ? 1 : 0, one("company", "alone"));
  families.gauge("fermata_exact", kExact, info.exactness.with_neighbours ? 1 : 0, one("company", "with_neighbours"));
}

void add_process(MetricFamilies& families) {
  const ProcessFigures process = process_figures();
  const auto gauge = [&](std::string_view name, std::string_view help, auto value) {
    families.gauge(name, help, static_cast<double>(value));
  };
  families.counter("process_cpu_seconds_total", "CPU time, user and system.", process.cpu_s);
  gauge("process_start_time_seconds", "When it was started, since 1970.", process.started_unix_s);
  gauge("process_resident_memory_bytes", "Memory that is resident.", process.n_bytes);
  gauge("process_open_fds", "Open files and sockets.", process.n_files);
  gauge("process_max_fds", "Most that may be open.", process.n_files_max);
  gauge("process_threads", "Threads.", process.n_threads);
}

// `tickets` in the order of time.
bool was_paused_between(std::span<const api::PauseTicket> tickets, Instant begin, Instant end) {
  const auto after = std::upper_bound(tickets.begin(), tickets.end(), end,
                                      [](Instant at, const api::PauseTicket& ticket) { return at < ticket.reached; });
  return after != tickets.begin() && begin <= std::prev(after)->reached;
}

}  // namespace

Metrics::Metrics(api::Desk& desk, std::function<std::uint64_t()> n_log_lines_lost)
    : desk_(desk),
      n_log_lines_lost_(std::move(n_log_lines_lost)),
      ttft_s_(seconds_of_waiting()),
      itl_s_(seconds_of_tokens()),
      whole_s_(seconds_of_waiting()),
      paused_s_(seconds_of_pauses()),
      n_prompt_(token_counts()),
      n_generated_(token_counts()) {
  desk_.follow([this](const Dossier& dossier, std::size_t place) { take(dossier, place); });
}

void Metrics::take(const Dossier& dossier, std::size_t place) {
  const LogEntry& entry = dossier.recording.log()[place];
  if (const auto* text = std::get_if<TextEvent>(&entry.what)) return take_text(dossier, *text, entry.time);
  take_end_of_pause(dossier, place);
  if (const auto* paused = std::get_if<LogEntry::Paused>(&entry.what))
    ++n_pauses_[static_cast<std::size_t>(dossier.recording.tickets()[paused->ticket].record.reason)];
  if (const auto* finish = std::get_if<FinishEvent>(&entry.what)) take_end(dossier, *finish, entry.time);
}

// From the log alone, up to this place: the recording may be ahead of it.
void Metrics::take_end_of_pause(const Dossier& dossier, std::size_t place) {
  const auto& log = dossier.recording.log();
  const auto* before = place == 0 ? nullptr : std::get_if<LogEntry::Paused>(&log[place - 1].what);
  if (before && needs_resume(dossier.recording.tickets()[before->ticket].record.reason))
    paused_s_.observe((log[place].time - log[place - 1].time).seconds());
}

// Between two tokens of which one was sampled before a pause and one after it there is no time that anybody waited for.
void Metrics::take_text(const Dossier& dossier, const TextEvent& text, Instant sent) {
  if (text.rows.empty()) return;
  const auto n_before = static_cast<std::size_t>(text.first_position) - dossier.prompt.size();
  if (n_before == 0) ttft_s_.observe((sent - dossier.created).seconds());
  const JournalRow* before = n_before == 0 ? nullptr : &dossier.recording.text().rows[n_before - 1];
  for (const JournalRow& row : text.rows) {
    if (before && !was_paused_between(dossier.recording.tickets(), before->time, row.time))
      itl_s_.observe((row.time - before->time).seconds());
    before = &row;
  }
}

void Metrics::take_end(const Dossier& dossier, const FinishEvent& finish, Instant ended) {
  ++n_ended_[static_cast<std::size_t>(finish.reason)];
  whole_s_.observe((ended - dossier.created).seconds());
  n_prompt_.observe(finish.n_prompt);
  n_generated_.observe(finish.n_generated);
  n_prompt_cached_ += static_cast<std::uint64_t>(finish.n_cached);
}

std::string Metrics::text() const {
  MetricFamilies families;
  add_generations(families);
  families.histogram("fermata_time_to_first_token_seconds", "From the request until its first token was sent.",
                     ttft_s_);
  families.histogram("fermata_inter_token_seconds", "Between two tokens of a generation, pauses left out.", itl_s_);
  families.histogram("fermata_generation_seconds", "From the request until the end, pauses and queue included.",
                     whole_s_);
  families.histogram("fermata_paused_seconds",
                     "Of each pause, from when it was reached until it went on, was paused anew or ended.", paused_s_);
  families.histogram("fermata_prompt_tokens", "Of each generation that ended.", n_prompt_);
  families.histogram("fermata_generated_tokens", "Of each generation that ended.", n_generated_);
  families.counter("fermata_prompt_tokens_cached_total", "Prompt tokens that were in the pool already.",
                   static_cast<double>(n_prompt_cached_));
  if (desk_.ready()) {
    const LoopStats& stats = desk_.core().stats();
    add_steps(families, stats);
    add_interrupts(families, stats);
    add_pool(families, stats, desk_.info().n_cells);
    add_model(families, desk_.options().model_name, desk_.info());
  }
  families.gauge("fermata_build_info", "Always 1; the label says what runs.", 1, one("version", version()));
  families.gauge("fermata_interrupt_unreached_seconds",
                 "Longest that a pause or cancel was asked for and is not reached.",
                 desk_.longest_unreached().seconds());
  families.gauge("fermata_engine_silent_seconds", "Since when the engine thread has not answered; asked once a second.",
                 desk_.silent_for().seconds());
  families.counter("fermata_log_lines_lost_total", "Lines of the log that were not read in time or not written.",
                   static_cast<double>(n_log_lines_lost_()));
  add_process(families);
  return families.text();
}

void Metrics::add_generations(MetricFamilies& families) const {
  std::array<std::size_t, kStates> by_state{};
  std::array<std::size_t, kWaitReasons> by_reason{};
  desk_.for_each([&](const Dossier& dossier) {
    ++by_state[static_cast<std::size_t>(dossier.recording.state())];
    if (!dossier.recording.ended()) ++by_reason[static_cast<std::size_t>(dossier.recording.wait_reason())];
  });
  for (std::size_t i = 0; i < kStates; ++i)
    if (const auto state = static_cast<State>(i); state != State::kFinished)
      families.gauge("fermata_generations", "Generations that have not ended, by state.",
                     static_cast<double>(by_state[i]), one("state", to_string(state)));
  for (std::size_t i = 1; i < kWaitReasons; ++i)
    families.gauge("fermata_generations_waiting", "Of them those that do not run, by why.",
                   static_cast<double>(by_reason[i]), one("reason", to_string(static_cast<WaitReason>(i))));
  for (std::size_t i = 1; i < kEndReasons; ++i)
    families.counter("fermata_generations_ended_total", "Generations that ended, by why.",
                     static_cast<double>(n_ended_[i]), one("reason", to_string(static_cast<EndReason>(i))));
  for (std::size_t i = 1; i < kWaitReasons; ++i) {
    const auto reason = static_cast<WaitReason>(i);
    if (needs_resume(reason))
      families.counter(
          "fermata_pauses_total", "Pauses that were reached, by why and by who is behind them.",
          static_cast<double>(n_pauses_[i]),
          {{"reason", std::string(to_string(reason))}, {"class", std::string(to_string(interrupt_class(reason)))}});
  }
}

}  // namespace fermata
