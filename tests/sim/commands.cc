// What the clients of a simulated world do, and what they may expect to hear.
#include <algorithm>
#include <set>
#include <utility>

#include "answer.h"
#include "base/limits.h"
#include "simulation.h"

namespace fermata::sim {

Simulation::Client* Simulation::find(GenerationId id) {
  const auto place = std::find_if(clients_.begin(), clients_.end(), [&](const auto& c) { return c->id == id; });
  return place == clients_.end() ? nullptr : place->get();
}

// Mostly one that lives.
Simulation::Client& Simulation::any_client() {
  std::vector<Client*> alive;
  for (const auto& client : clients_)
    if (!client->watch.finished() && !client->gone) alive.push_back(client.get());
  return alive.empty() || random_.chance(0.05) ? *random_.pick(clients_) : *random_.pick(alive);
}

// One that may have rows in the step in flight, if any has.
Simulation::Client& Simulation::running_client() {
  std::vector<Client*> running;
  for (const auto& client : clients_)
    if (client->watch.state() == State::kRunning) running.push_back(client.get());
  return running.empty() ? any_client() : *random_.pick(running);
}

// One whose frozen point the step in flight may compute, if there is one.
Simulation::Client& Simulation::inspected_client() {
  for (const auto& answer : answers_)
    if (!answer->given && answer->call == "inspect")
      if (Client* client = find(answer->of)) return *client;
  return running_client();
}

void Simulation::act() {
  const double submit_chance = clients_.size() < 3 ? 0.8 : clients_.size() < 16 ? 0.15 : 0;
  while (random_.chance(submit_chance)) submit_random();
  while (!clients_.empty() && random_.chance(0.35)) act_on(any_client(), random_.between(0, 19));
  for (const auto& client : clients_)
    if (client->is_stalled() && random_.chance(0.2)) get_status(client->id);
  clock_.advance({random_.between(0, 2'000'000)});
  if (random_.chance(0.004)) clock_.advance(seconds(31));
  if (random_.chance(0.02)) {
    const GenerationId nobody{next_id_ + 1000};
    random_.chance(0.5) ? pause(nobody) : resume(nobody);
    random_.chance(0.5) ? cancel(nobody, EndReason::kCancelled) : inspect(nobody);
    get_status(nobody);
  }
}

void Simulation::act_on(Client& client, int what) {
  switch (what) {
    case 0:
    case 1:
    case 2: return pause(client.id);
    case 3:
    case 4:
    case 5:
    case 6: return resume(client.id);
    case 7: return inspect(client.id);
    case 8: return random_.chance(0.6) ? burst(client) : get_status(client.id);
    case 9:
      return cancel(client.id, random_.pick(std::vector{EndReason::kCancelled, EndReason::kCancelled,
                                                        EndReason::kReplaced, EndReason::kContentFilter}));
    case 10:
    case 11: return burst(client);
    case 12: return get_status(client.id);
    case 13:
    case 14:
      client.reads = !client.reads;
      client.stalled_at.reset();
      return say("  " + std::to_string(raw(client.id)) + (client.reads ? " reads" : " is slow"));
    case 15:
      if (client.gone || !random_.chance(0.3)) return;
      client.gone = true;
      client.ring->abandon();
      coverage_.count("reader gone");
      return say("  " + std::to_string(raw(client.id)) + " is gone");
    default: return;
  }
}

// Several calls that arrive together: what the last one asked for must hold.
void Simulation::burst(Client& client) {
  const GenerationId id = client.id;
  switch (random_.between(0, 7)) {
    case 0: pause(id), resume(id), pause(id); break;
    case 1:
      if (options_.plant != Plant::kResumeOvertaken) {
        pause(id), resume(id);
      } else {
        resume(id), pause(id);
        client.last_asked = Client::Asked::kResume;
      }
      break;
    case 2: resume(id), pause(id); break;
    case 3: pause(id), inspect(id), resume(id); break;
    case 4: pause(id), inspect(id), pause(id), inspect(id); break;
    case 5: pause(id), cancel(id, EndReason::kReplaced); break;
    case 6: pause(id), cancel(id, EndReason::kCancelled), resume(id); break;
    default: inspect(id), resume(id), pause(id); break;
  }
  get_status(id);
}

// More calls and more generations than the limits allow.
void Simulation::flood() {
  for (std::size_t i = 0; i < limits::kWorkCallsMax + 2; ++i) get_status(GenerationId{next_id_ + 1'000'000});
  turn();
  Request tiny;
  tiny.prompt = requests_->prompt(2);
  tiny.n_tokens_max = 1;
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < loop_options_.n_generations_max / 2 + 20; ++i) submit(tiny, 16);
    turn();
  }
  for (const auto& client : clients_) cancel(client->id, EndReason::kCancelled);
  turn();
}

// -------------------------------------------------------------------------------------------------------------- calls

void Simulation::submit_random() { submit(requests_->make(), random_.chance(0.4) ? 4 + random_.next() % 12 : 1024); }

void Simulation::submit(Request request, std::size_t ring_size) {
  Result<ValidRequest> valid =
      validate(std::move(request), engine_->info(), engine_->vocabulary(), engine_->samplers());
  if (!valid) return coverage_.count("request refused");
  const Request checked = **valid;
  const GenerationId id{next_id_++};
  Result<Generation> generation = Generation::make(id, *std::move(valid), engine_->vocabulary(), clock_.now());
  SIM_EXPECT(generation.has_value(), "a valid request made no generation");
  auto ring = std::make_shared<EventRing>(ring_size);
  say("submit " + std::to_string(raw(id)) + ": prompt " + std::to_string(checked.prompt.size()) + ", at most " +
      std::to_string(checked.n_tokens_max) + ", priority " + std::to_string(checked.priority) + ", pause_at " +
      std::to_string(checked.pause_at.value_or(-1)) + ", ring " + std::to_string(ring_size));
  if (!post(Submit{std::make_unique<Generation>(*std::move(generation)), ring})) return;
  clients_.push_back(std::make_unique<Client>(id, Watch(id, checked, model_, coverage_), std::move(ring)));
}

template <class What>
bool Simulation::post(What what) {
  const Result<void> posted = loop_->post({clock_.now(), std::move(what)});
  if (!posted && posted.error().code == Code::kBusy) coverage_.count("refused: mailbox busy");
  return posted.has_value();
}

void Simulation::pause(GenerationId id) {
  say("pause " + std::to_string(raw(id)));
  Reply<PauseRecord> reply;
  const bool for_reader = random_.chance(0.1);
  if (!post(Pause{id, reply, for_reader ? WaitReason::kSlowReader : WaitReason::kUser})) return;
  engine_->note_interrupt(id);
  Client* client = find(id);
  if (client) client->last_asked = Client::Asked::kPause;
  if (client && engine_->in_step() && client->watch.state() == State::kPaused) coverage_.count("paused anew in a step");
  expect_answer<PauseRecord>(reply, id, "pause", [this, id, client](const Result<PauseRecord>& answer) {
    if (!answer) return on_refusal(answer.error(), id, "pause");
    SIM_EXPECT(needs_resume(answer->reason), "of a pause asked for");
    client->watch.claim_frozen(answer->at - static_cast<Position>(client->watch.request().prompt.size()));
  });
}

void Simulation::resume(GenerationId id) {
  say("resume " + std::to_string(raw(id)));
  Reply<Status> reply;
  if (!post(Resume{id, reply, {}})) return;
  if (Client* client = find(id)) client->last_asked = Client::Asked::kResume;
  expect_answer<Status>(reply, id, "resume", [this, id](const Result<Status>& answer) {
    if (!answer) return on_refusal(answer.error(), id, "resume");
    SIM_EXPECT(!(answer->state == State::kPaused && needs_resume(answer->wait_reason)), "resumed, but still paused");
  });
}

void Simulation::cancel(GenerationId id, EndReason reason) {
  say("cancel " + std::to_string(raw(id)));
  Reply<Status> reply;
  if (!post(Cancel{id, reason, reply})) return;
  engine_->note_interrupt(id);
  if (Client* client = find(id)) client->last_asked = Client::Asked::kCancel;
  expect_answer<Status>(reply, id, "cancel", [this, id](const Result<Status>& answer) {
    if (!answer) return on_refusal(answer.error(), id, "cancel");
    SIM_EXPECT(answer->state == State::kFinished, "cancelled, but not ended");
  });
}

void Simulation::inspect(GenerationId id) {
  say("inspect " + std::to_string(raw(id)));
  Reply<Inspection> reply;
  if (!post(Inspect{id, random_.between(0, 20), random_.between(0, 12), reply})) return;
  Client* client = find(id);
  if (client) client->watch.note_inspected();
  const bool must_be_frozen = client && client->last_asked == Client::Asked::kPause;
  expect_answer<Inspection>(reply, id, "inspect", [this, id, client, must_be_frozen](const Result<Inspection>& answer) {
    if (answer) return client->watch.on_inspection(*answer);
    // "Wrong state" may mean that it had ended, or that it runs.
    if (answer.error().code != Code::kWrongState || must_be_frozen) return on_refusal(answer.error(), id, "inspect");
    coverage_.count("refused: inspect, wrong state");
  });
}

void Simulation::get_status(GenerationId id) {
  Reply<Status> reply;
  if (!post(GetStatus{id, reply})) return;
  Client* client = find(id);
  using Asked = Client::Asked;
  const Asked asked = client ? client->last_asked : Asked::kNothing;
  const bool is_stalled = client && client->is_stalled() && !engine_->in_step();
  expect_answer<Status>(reply, id, "status", [this, id, client, asked, is_stalled](const Result<Status>& answer) {
    if (!answer) return on_refusal(answer.error(), id, "status");
    if (is_stalled && client->is_stalled()) {
      SIM_EXPECT(answer->n_generated == client->stalled_at.value_or(answer->n_generated),
                 "a token nobody had room for");
      client->stalled_at = answer->n_generated;
    }
    if (answer->state == State::kFinished) return;
    const bool is_held = answer->state == State::kPaused && needs_resume(answer->wait_reason);
    SIM_EXPECT(asked != Asked::kCancel, "a cancelled generation goes on");
    if (asked == Asked::kPause)
      SIM_EXPECT(is_held, "the last call was a pause, but it is " + std::string(to_string(answer->state)));
    if (asked == Asked::kResume)
      SIM_EXPECT(!is_held || answer->wait_reason == WaitReason::kPauseAt, "the last call was a resume, but it is held");
    if (!is_held) return;
    client->watch.claim_frozen(answer->n_generated);
    client->watch.claim_still(answer->n_generated, answer->computed);
  });
}

// ------------------------------------------------------------------------------------------------------------ answers

template <class T>
void Simulation::expect_answer(const Reply<T>& reply, GenerationId id, std::string_view call,
                               std::function<void(const Result<T>&)> check) {
  auto answer = std::make_unique<Answer>();
  answer->of = id;
  answer->call = call;
  answer->asked_at = now_in_halves_;
  answer->poll = [reply, check = std::move(check)] {
    const std::optional<Result<T>> given = reply.poll();
    if (given) check(*given);
    return given.has_value();
  };
  answers_.push_back(std::move(answer));
}

// All but inspections are answered by the end of the turn that takes them: what was asked between turns by the end of
// the next one, what was asked within one (whose step may be aborted) by the end of the one after it. A resume does not
// take away the frozen point that an inspection before it asked for.
void Simulation::check_answers(bool all) {
  std::set<GenerationId> inspected;  // and not answered yet
  for (const auto& answer : answers_) {
    const bool comes = answer->poll();
    SIM_EXPECT(!comes || !answer->given, "a command was answered twice");
    answer->given = answer->given || comes;
    const std::string name = std::string(answer->call) + " of generation " + std::to_string(raw(answer->of));
    if (answer->call == "inspect" && !answer->given) inspected.insert(answer->of);
    if (answer->call == "resume" && comes)
      SIM_EXPECT(!inspected.contains(answer->of), name + " overtook an inspection");
    const bool is_due = all || (!inspected.contains(answer->of) && now_in_halves_ - answer->asked_at >= 2);
    SIM_EXPECT(answer->given || !is_due, name + " got no answer");
  }
}

void Simulation::on_refusal(const Error& error, GenerationId id, std::string_view call) {
  Client* client = find(id);
  const std::string name = "refused: " + std::string(call);
  if (!client) {
    SIM_EXPECT(error.code == Code::kNotFound, error.message);
    return coverage_.count(name + ", not found");
  }
  SIM_EXPECT(error.code == Code::kWrongState, name + ": " + error.message + " " + error.detail);
  client->watch.claim_ended(clock_.now());
  coverage_.count(name + ", wrong state");
}

}  // namespace fermata::sim
