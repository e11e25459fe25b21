// What a freeze costs the engine thread, against the length of what is frozen: from the end of the step to the end of
// the turn, logits row and events included. The same for a turn that samples a token, for comparison.
#include <cstdio>

#include "base/limits.h"
#include "cli/bench_stand.h"
#include "runtime/engine_loop.h"

namespace fermata::cli {
namespace {

class FreezeBench {
 public:
  explicit FreezeBench(BenchStand& stand) : stand_(stand) { stand.empty_pool(); }

  // False if the prompt could not be computed before `deadline`.
  bool measure(std::span<const TokenId> prompt, Instant deadline, BenchRow& row);

 private:
  template <class What>
  void post(What what) {
    if (!loop_.post({stand_.clock().now(), std::move(what)})) give_up("the loop takes no commands");
  }
  double turn_after_step();
  Reply<PauseRecord> pause_during_next_step();

  BenchStand& stand_;
  BenchEngine engine_{stand_.engine(), stand_.clock()};
  EngineLoop loop_{engine_, stand_.clock()};
  std::uint64_t next_id_ = 1;
  GenerationId id_ = kNoGeneration;
};

double FreezeBench::turn_after_step() {
  loop_.turn();
  return (stand_.clock().now() - engine_.last().end).ms();
}

Reply<PauseRecord> FreezeBench::pause_during_next_step() {
  Reply<PauseRecord> reply;
  engine_.at_end_of_step([this, reply] { post(Pause{id_, reply}); });
  return reply;
}

bool FreezeBench::measure(std::span<const TokenId> prompt, Instant deadline, BenchRow& row) {
  const Instant begun = stand_.clock().now();
  id_ = GenerationId{next_id_++};
  auto events = std::make_shared<EventRing>(limits::kEventRingMax);
  ValidRequest request = or_give_up(validate(BenchStand::greedy({prompt.begin(), prompt.end()}, 3 * kFreezesMax),
                                             engine_.info(), engine_.vocabulary(), engine_.samplers()));
  auto generation =
      std::make_unique<Generation>(or_give_up(Generation::make(id_, std::move(request), engine_.vocabulary(), begun)));
  const Generation& watched = *generation;
  post(Submit{std::move(generation), events});
  while (watched.journal().n_generated() == 0) {
    if (stand_.clock().now() > deadline) return false;
    loop_.turn();
    engine_.forget();
  }
  row.put("fill_s", stand_.ms_since(begun) / 1000);

  std::vector<double> freezes;
  std::vector<double> tokens;
  for (std::int32_t i = 0; i < kFreezesMax; ++i) {
    tokens.push_back(turn_after_step());
    const Reply<PauseRecord> reply = pause_during_next_step();
    freezes.push_back(turn_after_step());
    const auto record = reply.poll();
    if (!record || !*record || !(*record)->has_logits) give_up("the pause was not reached with its logits row");
    post(Resume{id_, Reply<Status>(), {}});
    engine_.forget();
    while (events->try_pop()) {
    }
  }
  row.put_spread("freeze", freezes).put_spread("token", tokens);
  post(Cancel{id_, EndReason::kCancelled, Reply<Status>()});
  loop_.turn();
  return true;
}

}  // namespace

void bench_freeze(BenchStand& stand, const BenchPlan& plan, std::vector<BenchRow>& rows) {
  const std::vector<TokenId> prompt = stand.random_tokens(100'000);
  const EngineInfo& info = stand.engine().info();
  FreezeBench bench(stand);
  const Instant deadline{stand.clock().now().ns + static_cast<std::int64_t>(plan.seconds_max * 1e9)};
  for (const std::int32_t length : freeze_lengths(info.n_cells, info.n_ctx_train)) {
    BenchRow row;
    row.put("part", "freeze").put("length", static_cast<double>(length));
    if (!bench.measure(std::span(prompt).first(static_cast<std::size_t>(length)), deadline, row)) {
      std::fprintf(stderr, "freeze: %d tokens were not computed in %.0f s\n", length, plan.seconds_max);
      break;
    }
    std::fprintf(stderr, "%s\n", row.json().c_str());
    rows.push_back(row);
  }
}

}  // namespace fermata::cli
