#include "cli/bench_stand.h"

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/check.h"

namespace fermata::cli {
namespace {

template <class Predicate>
void wait_for_event(EventRing& events, Predicate&& is_it) {
  while (true) {
    const std::optional<Event> event = events.pop(seconds(120));
    if (!event) give_up("the engine fell silent");
    if (is_it(*event)) return;
    if (std::holds_alternative<FinishEvent>(event->content)) give_up("a generation ended too early");
  }
}

}  // namespace

BenchStand::Run BenchStand::fresh_run() {
  empty_pool();
  auto engine = std::make_unique<BenchEngine>(engine_, clock_);
  BenchEngine* const watched = engine.get();
  return {watched, std::make_unique<Core>(std::move(engine), clock_, LoopOptions{limits_})};
}

void BenchStand::empty_pool() {
  for (std::int32_t seq = 0; seq < engine_.ledger().n_seqs(); ++seq) engine_.trim(SeqId{seq}, 0);
}

std::vector<TokenId> BenchStand::random_tokens(std::size_t n) {
  const Vocabulary& vocabulary = engine_.vocabulary();
  std::uniform_int_distribution<std::int32_t> any(0, vocabulary.n_tokens() - 1);
  std::vector<TokenId> tokens;
  while (tokens.size() < n) {
    const TokenId token{any(random_)};
    if (!vocabulary.is_control(token) && !vocabulary.ends_generation(token)) tokens.push_back(token);
  }
  return tokens;
}

Request BenchStand::greedy(std::vector<TokenId> prompt, std::int32_t n_tokens) {
  Request request;
  request.prompt = std::move(prompt);
  request.n_tokens_max = n_tokens;
  request.sampling.temperature = 0;
  request.sampling.ignore_eos = true;
  return request;
}

void give_up(std::string_view why) {
  std::fprintf(stderr, "bench: %.*s\n", static_cast<int>(why.size()), why.data());
  std::_Exit(1);
}

void wait_until_paused(EventRing& events) {
  wait_for_event(events, [](const Event& event) {
    const auto* state = std::get_if<StateEvent>(&event.content);
    return state && state->state == State::kPaused;
  });
}

void wait_for_end(EventRing& events) {
  wait_for_event(events, [](const Event& event) { return std::holds_alternative<FinishEvent>(event.content); });
}

void sleep_ms(double ms) { std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms)); }

}  // namespace fermata::cli
