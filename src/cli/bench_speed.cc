// Tokens per second through the whole core: plan, step, sampler, events.
#include <algorithm>
#include <cstdio>

#include "cli/bench_stand.h"

namespace fermata::cli {
namespace {

constexpr std::int32_t kDecoded = 64;  // tokens of each stream

// All streams wait before their first token, then go on together; what is timed is the steps that carry all of them.
double decode_rate(BenchStand& stand, BenchStand::Run& run, std::size_t n_streams, std::size_t n_prompt) {
  std::vector<Started> streams;
  for (std::size_t i = 0; i < n_streams; ++i) {
    Request request = BenchStand::greedy(stand.random_tokens(n_prompt), kDecoded);
    request.pause_at = 0;
    streams.push_back(or_give_up(run.core->submit(std::move(request))));
  }
  for (const Started& stream : streams) wait_until_paused(*stream.events);
  run.engine->forget();
  for (const Started& stream : streams) run.core->resume(stream.id);
  for (const Started& stream : streams) wait_for_end(*stream.events);

  std::vector<BenchEngine::Step> full = run.engine->steps();
  std::erase_if(full, [&](const BenchEngine::Step& step) { return step.n_rows != n_streams; });
  if (full.size() < 2) give_up("the streams never ran together");
  const double span_s = (full.back().begin - full.front().begin).ms() / 1000;
  return static_cast<double>((full.size() - 1) * n_streams) / span_s;
}

// From the call to the end of a generation that only computes its prompt.
double prefill_rate(BenchStand& stand, BenchStand::Run& run, std::size_t n_prompt) {
  std::vector<TokenId> prompt = stand.random_tokens(n_prompt);
  const Instant begun = stand.clock().now();
  const Started started = or_give_up(run.core->submit(BenchStand::greedy(std::move(prompt), 0)));
  wait_for_end(*started.events);
  return static_cast<double>(n_prompt) / (stand.ms_since(begun) / 1000);
}

// Mixed short requests, eight at a time: prompts that share a beginning or do not, answers of all lengths, every fifth
// cancelled on the way. They leave holes and cached prefixes.
void age(BenchStand& stand, BenchStand::Run& run, std::int32_t n_requests) {
  const std::vector<TokenId> shared = stand.random_tokens(60);
  std::vector<Started> running;
  for (std::int32_t i = 0; i < n_requests; ++i) {
    std::vector<TokenId> prompt = i % 3 == 0 ? shared : std::vector<TokenId>{};
    for (const TokenId token : stand.random_tokens(5 + static_cast<std::size_t>(stand.random(120))))
      prompt.push_back(token);
    const auto n_tokens = static_cast<std::int32_t>(1 + stand.random(24));
    running.push_back(or_give_up(run.core->submit(BenchStand::greedy(std::move(prompt), n_tokens))));
    if (i % 5 == 4) run.core->cancel(running.back().id);
    if (running.size() < 8) continue;
    wait_for_end(*running.front().events);
    running.erase(running.begin());
  }
  for (const Started& started : running) wait_for_end(*started.events);
}

using Measure = double (*)(BenchStand&, BenchStand::Run&, std::size_t n_streams, std::size_t n_prompt);

struct Cell {
  const char* part;
  SpeedCell what;
  Measure measure;
  std::vector<double> rates = {};
};

void run_cells(BenchStand& stand, const BenchPlan& plan, std::vector<Cell> cells, std::vector<BenchRow>& rows) {
  for (const bool aged : {false, true}) {
    if (aged && !plan.aged) break;
    for (Cell& cell : cells) cell.rates.clear();
    BenchStand::Run aged_run;
    if (aged) {
      aged_run = stand.fresh_run();
      age(stand, aged_run, plan.n_aging);
    }
    for (std::int32_t round = 0; round < plan.n_rounds; ++round) {
      for (Cell& cell : cells) {
        BenchStand::Run fresh_run;
        if (!aged) fresh_run = stand.fresh_run();
        cell.rates.push_back(cell.measure(stand, aged ? aged_run : fresh_run, cell.what.n_streams, cell.what.n_prompt));
        std::fprintf(stderr, "%s %zu x %zu%s: %.1f tok/s\n", cell.part, cell.what.n_streams, cell.what.n_prompt,
                     aged ? ", aged" : "", cell.rates.back());
      }
    }
    for (const Cell& cell : cells)
      rows.push_back(BenchRow()
                         .put("part", cell.part)
                         .put("streams", static_cast<double>(cell.what.n_streams))
                         .put("prompt", static_cast<double>(cell.what.n_prompt))
                         .put("pool", aged ? "aged" : "fresh")
                         .put("tok_s", cell.rates));
  }
}

}  // namespace

void bench_decode(BenchStand& stand, const BenchPlan& plan, std::vector<BenchRow>& rows) {
  std::vector<Cell> cells;
  for (const SpeedCell& what : decode_cells(plan)) cells.push_back({"decode", what, decode_rate});
  run_cells(stand, plan, std::move(cells), rows);
}

void bench_prefill(BenchStand& stand, const BenchPlan& plan, std::vector<BenchRow>& rows) {
  const Measure rate = [](BenchStand& on, BenchStand::Run& run, std::size_t, std::size_t n) {
    return prefill_rate(on, run, n);
  };
  std::vector<Cell> cells;
  for (const SpeedCell& what : prefill_cells(plan)) cells.push_back({"prefill", what, rate});
  run_cells(stand, plan, std::move(cells), rows);
}

}  // namespace fermata::cli
