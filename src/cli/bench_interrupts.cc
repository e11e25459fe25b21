// How long a pause takes. Frozen: from the call until the caller has the pause record. Released: from the call until
// the step that was computing for the generation has ended.
#include <cstdio>
#include <optional>

#include "cli/bench_stand.h"

namespace fermata::cli {
namespace {

constexpr std::int32_t kTokensMax = 400;       // of a stream; its events fit into its ring unread
constexpr std::size_t kPausesOfOneStart = 80;  // then the streams begin again, so that they stay near their depth
constexpr std::size_t kTail = 8;               // tokens of a prompt that no other stream has
constexpr std::size_t kUncomputed = 600;       // tokens of a prompt that are left at the depth

struct Spread {
  std::vector<double> frozen;
  std::vector<double> beyond;  // of frozen: what lies after the end of the step that was in flight at the call
  std::vector<double> released;
  std::vector<double> step;  // length of whole steps, for comparison
  std::size_t n_aborted = 0;
};

class Interrupts {
 public:
  Interrupts(BenchStand& stand, const BenchPlan& plan, std::size_t depth)
      : stand_(stand), plan_(plan), run_(stand.fresh_run()), shared_(stand.random_tokens(depth)) {}

  Spread in_decode(std::size_t n_streams);
  Spread in_prefill();
  // The second pause of a pair: the step after an aborted one cannot be aborted.
  Spread in_prefill_again();

 private:
  bool goes_on(const Spread& spread, std::int32_t n) const {
    return spread.frozen.size() < static_cast<std::size_t>(n) && stand_.ms_since(begun_) < plan_.seconds_max * 1000;
  }
  std::vector<Started> start_streams(std::size_t n_streams);
  Started start_prompt();
  void compute_shared();
  void one_plain_step();
  void end(const Started& started);
  void pause(GenerationId id, Spread& spread);
  void resume(GenerationId id) { or_give_up(await(run_.core->resume(id))); }
  void note_steps(Spread& spread, std::size_t n_rows);
  std::optional<BenchEngine::Step> in_flight_at(Instant call) const;

  BenchStand& stand_;
  const BenchPlan& plan_;
  BenchStand::Run run_;
  std::vector<TokenId> shared_;  // what all prompts begin with
  Instant begun_ = stand_.clock().now();
};

void Interrupts::end(const Started& started) {
  or_give_up(await(run_.core->cancel(started.id)));
  wait_for_end(*started.events);
}

void Interrupts::compute_shared() {
  const Started started = or_give_up(run_.core->submit(BenchStand::greedy(shared_, 0)));
  wait_for_end(*started.events);
}

// After it a step can be aborted again.
void Interrupts::one_plain_step() {
  const Started started = or_give_up(run_.core->submit(BenchStand::greedy(stand_.random_tokens(1), 0)));
  wait_for_end(*started.events);
}

std::vector<Started> Interrupts::start_streams(std::size_t n_streams) {
  std::vector<Started> streams;
  for (std::size_t i = 0; i < n_streams; ++i) {
    std::vector<TokenId> prompt(shared_.begin(), shared_.end() - kTail);
    for (const TokenId token : stand_.random_tokens(kTail)) prompt.push_back(token);
    Request request = BenchStand::greedy(std::move(prompt), kTokensMax);
    request.pause_at = 0;
    streams.push_back(or_give_up(run_.core->submit(std::move(request))));
  }
  for (const Started& stream : streams) wait_until_paused(*stream.events);
  for (const Started& stream : streams) resume(stream.id);
  return streams;
}

Started Interrupts::start_prompt() {
  std::vector<TokenId> prompt = shared_;
  for (const TokenId token : stand_.random_tokens(kUncomputed)) prompt.push_back(token);
  return or_give_up(run_.core->submit(BenchStand::greedy(std::move(prompt), 0)));
}

std::optional<BenchEngine::Step> Interrupts::in_flight_at(Instant call) const {
  const std::vector<BenchEngine::Step> steps = run_.engine->steps();
  for (auto step = steps.rbegin(); step != steps.rend() && step->end >= call; ++step)
    if (step->begin <= call) return *step;
  return std::nullopt;
}

void Interrupts::pause(GenerationId id, Spread& spread) {
  const Instant call = stand_.clock().now();
  or_give_up(await(run_.core->pause(id)));
  const Instant reply = stand_.clock().now();
  const std::optional<BenchEngine::Step> step = in_flight_at(call);
  spread.frozen.push_back((reply - call).ms());
  spread.beyond.push_back((reply - (step ? step->end : call)).ms());
  spread.released.push_back(step ? (step->end - call).ms() : 0);
  if (step && step->aborted) ++spread.n_aborted;
}

void Interrupts::note_steps(Spread& spread, std::size_t n_rows) {
  for (const BenchEngine::Step& step : run_.engine->steps())
    if (!step.aborted && step.n_rows == n_rows) spread.step.push_back((step.end - step.begin).ms());
  run_.engine->forget();
}

Spread Interrupts::in_decode(std::size_t n_streams) {
  Spread spread;
  compute_shared();
  while (goes_on(spread, plan_.n_samples)) {
    run_.engine->forget();
    const std::vector<Started> streams = start_streams(n_streams);
    for (std::size_t i = 0; i < kPausesOfOneStart && goes_on(spread, plan_.n_samples); ++i) {
      const GenerationId id = streams[i % n_streams].id;
      if (!run_.engine->wait_done(1)) give_up("no step was finished in a minute");
      const BenchEngine::Step last = run_.engine->last();
      sleep_ms(stand_.random((last.end - last.begin).ms()));
      pause(id, spread);
      resume(id);
    }
    note_steps(spread, n_streams);
    for (const Started& stream : streams) end(stream);
  }
  return spread;
}

Spread Interrupts::in_prefill() {
  Spread spread;
  compute_shared();
  double step_ms = 20;
  while (goes_on(spread, plan_.n_samples)) {
    one_plain_step();
    run_.engine->forget();
    const Started started = start_prompt();
    const bool watch = spread.frozen.size() % 20 == 0;  // let one chunk be finished, to know its length
    if (watch && !run_.engine->wait_done(1)) give_up("no step was finished in a minute");
    if (watch) step_ms = (run_.engine->last().end - run_.engine->last().begin).ms();
    if (watch) spread.step.push_back(step_ms);
    sleep_ms(0.5 + stand_.random(step_ms));
    pause(started.id, spread);
    end(started);
  }
  return spread;
}

Spread Interrupts::in_prefill_again() {
  Spread spread;
  compute_shared();
  while (goes_on(spread, plan_.n_second_pauses())) {
    one_plain_step();
    run_.engine->forget();
    const Started started = start_prompt();
    sleep_ms(2);
    or_give_up(await(run_.core->pause(started.id)));
    resume(started.id);
    sleep_ms(stand_.random(20));
    pause(started.id, spread);
    end(started);
  }
  return spread;
}

BenchRow row_of(const char* where, std::size_t n_streams, std::size_t depth, const Spread& spread) {
  BenchRow row;
  row.put("part", "frozen").put("where", where).put("streams", static_cast<double>(n_streams));
  row.put("depth", static_cast<double>(depth)).put("aborted", static_cast<double>(spread.n_aborted));
  row.put_spread("frozen", spread.frozen).put_spread("beyond", spread.beyond);
  row.put_spread("released", spread.released).put_spread("step", spread.step);
  std::fprintf(stderr, "%s\n", row.json().c_str());
  return row;
}

}  // namespace

void bench_interrupts(BenchStand& stand, const BenchPlan& plan, std::vector<BenchRow>& rows) {
  for (const std::size_t depth : {100, 1000, 4000}) {
    rows.push_back(row_of("decode", 1, depth, Interrupts(stand, plan, depth).in_decode(1)));
    rows.push_back(row_of("decode", 8, depth, Interrupts(stand, plan, depth).in_decode(8)));
    rows.push_back(row_of("prefill", 1, depth, Interrupts(stand, plan, depth).in_prefill()));
    rows.push_back(row_of("prefill again", 1, depth, Interrupts(stand, plan, depth).in_prefill_again()));
  }
}

}  // namespace fermata::cli
