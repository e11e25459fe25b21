#include "simulation.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "answer.h"
#include "base/limits.h"
#include "engine/fake/fake_hash.h"
#include "engine/sampling/plain_sampler.h"

namespace fermata::sim {
namespace {

std::vector<FakeFault> random_faults(Random& random) {
  std::vector<FakeFault> faults;
  using Kind = FakeFault::Kind;
  for (const Kind kind : {Kind::kFails, Kind::kNoCells, Kind::kAborts, Kind::kAborts})
    if (random.chance(0.15)) faults.push_back({kind, static_cast<std::uint64_t>(random.between(0, 120)), 1});
  return faults;
}

PlanLimits random_limits(Random& random) {
  PlanLimits limits;
  limits.n_decode_rows = random.pick(std::vector<std::int32_t>{1, 2, 3, 8, 64});
  limits.n_prefill_rows = random.pick(std::vector<std::int32_t>{1, 4, 16, 128});
  limits.n_prefill_rows_shared = random.between(1, std::min(limits.n_prefill_rows, 32));
  limits.n_rows_ahead = random.pick(std::vector<std::int32_t>{1, 4, 8});
  limits.overdue_after = milliseconds(random.pick(std::vector<std::int32_t>{1, 50, 5000}));
  return limits;
}

}  // namespace

Simulation::Simulation(const SimulationOptions& options, Coverage& coverage)
    : options_(options), coverage_(coverage), random_(options.seed) {
  const auto vocabulary = std::make_shared<const FakeVocabulary>();
  model_ = hash_model(vocabulary, {.seed = random_.next(), .end_probability = random_.chance(0.5) ? 0.01 : 0.06});
  FakeOptions fake;
  switch (random_.between(0, 2)) {
    case 0: fake.n_cells = random_.between(8, 40); break;
    case 1: fake.n_cells = random_.between(40, 120); break;
    default: fake.n_cells = random_.between(120, 500); break;
  }
  fake.n_seqs = random_.chance(0.6) ? random_.between(2, 6) : random_.between(7, 40);
  fake.model = model_;
  fake.faults = random_faults(random_);
  fake.samplers =
      plant_in(std::make_shared<PlainSamplerFactory>(vocabulary->n_tokens(), vocabulary->end()), options.plant);
  fake.bug = engine_bug(options.plant);
  fake.n_polls = random_.between(1, 4);
  fake.on_poll = [this](std::int32_t) { step_is_polled(); };
  fake.on_compute = take_time(clock_, milliseconds(1), {50'000});
  engine_ = std::make_unique<WatchedEngine>(fake, options.plant, coverage_);
  loop_options_.plan = random_limits(random_);
  loop_options_.n_page_tokens = random_.pick(std::vector<std::int32_t>{1, 3, 8, 16, 64});
  if (random_.chance(0.15)) loop_options_.page_bytes_max = static_cast<std::size_t>(random_.between(0, 4000));
  loop_options_.n_generations_max = 1000;  // so that a flood reaches it soon
  loop_ = std::make_unique<EngineLoop>(*engine_, clock_, loop_options_);
  requests_ = std::make_unique<RequestMaker>(random_, engine_->info(), model_);
  poll_chance_ = random_.pick(std::vector<double>{0, 0.05, 0.2});
  say("world: " + std::to_string(fake.n_cells) + " cells, " + std::to_string(fake.n_seqs) + " sequences, rows " +
      std::to_string(loop_options_.plan.n_decode_rows) + " / " + std::to_string(loop_options_.plan.n_prefill_rows) +
      " / " + std::to_string(loop_options_.plan.n_prefill_rows_shared));
}

Simulation::~Simulation() = default;

void Simulation::say(const std::string& what) const {
  if (options_.verbose) std::printf("%6llu %s\n", static_cast<unsigned long long>(now_in_halves_ / 2), what.c_str());
}

void Simulation::run() {
  acting_ = true;
  if (random_.chance(0.004)) flood();
  for (std::int32_t n_turns = random_.between(20, 120); n_turns > 0; --n_turns) {
    act();
    turn();
  }
  acting_ = false;
  if (random_.chance(0.08)) return shut_down();
  settle();
  check_the_gone();
  probe();
  coverage_.count("eviction", loop_->stats().n_evictions.load());
  coverage_.count("preemption", loop_->stats().n_preempted.load());
  coverage_.count("parking", loop_->stats().n_parked.load());
  coverage_.count("page out", loop_->stats().n_pages_out.load());
  coverage_.count("page in", loop_->stats().n_pages_in.load());
  coverage_.count("pages dropped, computed again", loop_->stats().n_pages_dropped.load());
  coverage_.count("step failed, its rows tried alone", loop_->stats().n_retried_alone.load());
}

void Simulation::turn() {
  std::size_t n_alive = 0;
  GenerationId alive = kNoGeneration;
  for (const auto& client : clients_)
    if (!client->watch.finished()) ++n_alive, alive = client->id;
  engine_->turn_begins();
  if (n_alive == 1) engine_->only_one_lives(alive);

  turn_max_ = std::max(turn_max_, clock_.now() - turn_began_);
  turn_began_ = clock_.now();
  for (const auto& client : clients_) client->watch.set_turn_max(turn_max_);
  ++now_in_halves_;
  loop_->turn();
  ++now_in_halves_;
  turn_max_ = std::max(turn_max_, clock_.now() - turn_began_);
  for (const auto& client : clients_) client->watch.set_turn_max(turn_max_);

  loop_->audit();
  for (const auto& client : clients_) {
    if (client->reads && !client->gone) read(*client);
    if (client->is_stalled() && !client->watch.finished()) coverage_.count("reader slow");
  }
  check_answers(false);
}

void Simulation::step_is_polled() {
  clock_.advance({1000});
  if (!acting_ || !random_.chance(poll_chance_) || clients_.empty()) return;
  do {
    Client& client = random_.chance(0.1) ? inspected_client() : random_.chance(0.6) ? running_client() : any_client();
    act_on(client, random_.chance(0.6) ? 0 : random_.between(0, 11));
  } while (random_.chance(0.4));
}

void Simulation::read(Client& client) {
  while (std::optional<Event> event = client.ring->try_pop()) {
    event->number += client.n_numbers_added;
    if (options_.plant == Plant::kEventLost && random_.chance(0.02)) continue;
    const auto* state = std::get_if<StateEvent>(&event->content);
    if (options_.plant == Plant::kHeldTextReleased && state && state->state == State::kPaused &&
        state->pause.n_bytes_held > 0 && !client.watch.held_text().empty()) {
      give(client, {event->number, event->time, TextEvent{client.watch.held_text(), 0, {}, 0}});
      ++event->number;
      ++client.n_numbers_added;
    }
    give(client, *std::move(event));
  }
}

void Simulation::give(Client& client, Event event) {
  if (options_.verbose) {
    std::string what = "  " + std::to_string(raw(client.id)) + " says ";
    if (const auto* text = std::get_if<TextEvent>(&event.content))
      what += "text, " + std::to_string(text->text.size()) + " bytes, " + std::to_string(text->rows.size()) + " rows";
    if (const auto* state = std::get_if<StateEvent>(&event.content))
      what += std::string(to_string(state->state)) + " " + std::string(to_string(state->wait_reason)) + " at " +
              std::to_string(state->pause.at);
    if (const auto* finish = std::get_if<FinishEvent>(&event.content))
      what += "finished, " + std::string(to_string(finish->reason)) + " " + finish->error.message + " after " +
              std::to_string(finish->n_generated);
    say(what);
  }
  client.watch.on_event(event);
  if (!client.watch.finished()) return;
  const FinishEvent& finish = client.watch.finish();
  if (finish.n_cached > 0)
    SIM_EXPECT(
        engine_->handed_on(std::span(client.watch.request().prompt).first(static_cast<std::size_t>(finish.n_cached))),
        "more cached tokens are told of than there were");
}

bool Simulation::all_ended() const {
  return loop_->roster().size() == 0 && std::all_of(clients_.begin(), clients_.end(), [](const auto& client) {
           return client->gone || client->watch.finished();
         });
}

// Turns that everything may take from here if nobody is starved. Of what runs, the most senior never gives way; it has
// rows at least every m-th turn, m generations being alive, if no step is aborted (one in two may be). So some
// generation ends within m * its work; then the next. A generation that waits longer than overdue_after is first.
std::uint64_t Simulation::settle_bound() const {
  std::uint64_t n_alive = 0;
  std::uint64_t n_work = 0;
  for (const auto& client : clients_) {
    if (client->watch.finished() || client->gone) continue;
    const Request& request = client->watch.request();
    ++n_alive;
    const auto n_tokens = static_cast<std::uint64_t>(request.n_tokens_max);
    const auto n_prefill = request.prompt.size() + n_tokens;
    n_work += n_prefill / static_cast<std::uint64_t>(loop_options_.plan.n_prefill_rows_shared) + n_tokens + 8;
    n_work += 2 * n_prefill / static_cast<std::uint64_t>(loop_options_.n_page_tokens);  // out and in, one page a turn
  }
  return 16 + 2 * n_alive * n_work;
}

// Nobody asks for more, all readers read, whoever is paused is resumed: everything must end.
void Simulation::settle() {
  say("settle");
  for (const auto& client : clients_) {
    client->reads = true;
    client->stalled_at.reset();
  }
  const std::uint64_t bound = settle_bound();
  std::uint64_t n_turns = 0;
  for (; !all_ended(); ++n_turns) {
    SIM_EXPECT(n_turns < bound, "not all have ended after " + std::to_string(bound) + " turns");
    for (const auto& client : clients_) {
      if (client->gone || client->watch.finished()) continue;
      const bool waits = client->watch.state() == State::kPaused && needs_resume(client->watch.wait_reason());
      if (!waits || client->n_pauses_resumed == client->watch.n_pauses()) continue;
      client->n_pauses_resumed = client->watch.n_pauses();
      resume(client->id);
    }
    turn();
    if (!loop_->roster().size()) clock_.advance({1000});
  }
  turn();
  settling_ = std::max(settling_, static_cast<double>(n_turns) / static_cast<double>(bound));
  check_answers(true);
  for (const auto& client : clients_) {
    if (!client->gone) {
      SIM_EXPECT(client->ring->closed_and_empty(), "the ring of an ended generation is open");
      client->watch.check_claims();
    }
  }
}

// The generations of readers that went away, and of no others.
void Simulation::check_the_gone() {
  for (const auto& client : clients_) {
    Reply<Status> reply;
    post(GetStatus{client->id, reply});
    loop_->turn();
    const std::optional<Result<Status>> answer = reply.poll();
    SIM_EXPECT(answer && answer->has_value() && (*answer)->state == State::kFinished, "it was forgotten or goes on");
    if ((*answer)->end_reason != EndReason::kDisconnected) continue;
    SIM_EXPECT(client->gone, "ended as disconnected though its reader was there");
    coverage_.end(EndReason::kDisconnected);
  }
}

// After all that, the pool must serve as if it were new: one request that needs every cell of it, and one whose prompt
// is known.
void Simulation::probe() {
  const std::size_t n_before = clients_.size();
  Request whole_pool;
  whole_pool.prompt = requests_->prompt(random_.between(1, engine_->info().n_cells - 1));
  whole_pool.sampling.ignore_eos = true;
  submit(whole_pool, 64);
  if (n_before > 0) {
    Request known = clients_.front()->watch.request();
    known.pause_at.reset();
    known.timeout.reset();
    submit(known, 64);
  }
  settle();
  for (std::size_t i = n_before; i < clients_.size(); ++i) {
    const EndReason reason = clients_[i]->watch.finish().reason;
    const bool by_fault = reason == EndReason::kError;  // checked against the reference or the faults elsewhere
    SIM_EXPECT(reason == EndReason::kLength || reason == EndReason::kStop || by_fault, "a probe was cut short");
  }
}

void Simulation::shut_down() {
  say("shut down");
  loop_->close();
  loop_->run();
  loop_->audit();
  SIM_EXPECT(!post(GetStatus{GenerationId{1}, Reply<Status>()}), "a command was taken after the end");
  for (const auto& client : clients_) {
    if (client->gone) continue;
    read(*client);
    SIM_EXPECT(client->ring->closed_and_empty(), "a ring is open after the shutdown");
  }
  check_answers(true);
}

}  // namespace fermata::sim
