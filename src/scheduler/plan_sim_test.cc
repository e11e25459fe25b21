#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>

#include "engine/kv_ledger.h"
#include "scheduler/plan.h"
#include "scheduler/prefix_tree.h"
#include "scheduler/sequence_ids.h"

// The scheduler's parts working together on a true ledger, without an engine: what is planned must always be possible,
// and everybody must get on.
namespace fermata {
namespace {

constexpr Duration kTurn = milliseconds(10);

struct Job {
  GenerationId id = kNoGeneration;
  std::vector<TokenId> tokens;  // all of them, known in advance
  Position n_prompt = 0;
  std::int32_t priority = 0;
  Instant arrival;

  Position wanted = 0;
  Position computed = 0;
  Instant last_planned;
  std::optional<SeqId> seq;
  bool paused = false;
  Instant admitted;  // the first time
  int n_preempted = 0;
};

class World {
 public:
  World(std::uint32_t n_cells, std::int32_t n_seqs, PlanLimits limits)
      : limits_(limits), ledger_(n_cells, n_seqs), ids_(n_seqs) {}

  void add(Job job) {
    job.arrival = job.last_planned = now_;
    job.wanted = job.n_prompt;
    const GenerationId id = job.id;
    jobs_.emplace(id, std::move(job));
  }

  void turn() {
    now_ = now_ + kTurn;
    const std::vector<CachedView> cached = view_cached();
    const std::vector<GenerationView> views = view_jobs();
    PoolView pool{ledger_.n_cells(), ledger_.n_free(), ids_.n_free(), cached, n_pinned()};
    const Plan plan = make_plan(views, pool, limits_, now_);
    ASSERT_NO_FATAL_FAILURE(check(plan, views));
    ASSERT_NO_FATAL_FAILURE(apply(plan));
    ledger_.audit();
    tree_.audit();
  }

  std::map<GenerationId, Job>& jobs() { return jobs_; }
  Instant now() const { return now_; }
  int n_evicted = 0, n_preempted = 0, n_shared = 0, n_out_of_cells = 0, n_finished = 0, n_together = 0;
  Duration longest_gap;  // between two rows of a stream in a turn that preempted nobody

 private:
  // Touching the sources first puts them last in the list, as PoolView asks.
  std::vector<CachedView> view_cached() {
    for (const auto& [id, job] : jobs_)
      if (!job.seq && !job.paused)
        if (const auto match = find(job); match && cached_.contains(match->seq)) cached_[match->seq] = now_;
    std::vector<SeqId> order;
    for (const auto& [seq, last_used] : cached_) order.push_back(seq);
    std::stable_sort(order.begin(), order.end(), [&](SeqId a, SeqId b) { return cached_[a] < cached_[b]; });
    const std::vector<std::uint32_t> freed = ledger_.freed_by(order);
    std::vector<CachedView> views;
    for (std::size_t i = 0; i < order.size(); ++i) views.push_back({order[i], freed[i], cached_[order[i]]});
    return views;
  }

  std::vector<GenerationView> view_jobs() const {
    std::vector<GenerationView> views;
    for (const auto& [id, job] : jobs_) {
      if (job.paused) continue;
      GenerationView view;
      view.id = id;
      view.queued = !job.seq;
      view.running = job.seq.has_value();
      view.wanted = job.wanted;
      view.computed = job.computed;
      view.priority = job.priority;
      view.arrival = job.arrival;
      view.last_planned = job.last_planned;
      view.n_room_min = job.wanted + 1;
      if (const auto match = find(job); view.queued && match) {
        view.n_room_min -= match->n_tokens;
        if (cached_.contains(match->seq)) view.source = match->seq;
      }
      views.push_back(view);
    }
    return views;
  }

  std::optional<PrefixTree::Match> find(const Job& job) const {
    return tree_.longest_match(std::span(job.tokens).first(static_cast<std::size_t>(job.wanted - 1)));
  }

  std::uint32_t n_pinned() const {
    Position n = 0;
    for (const auto& [id, job] : jobs_) n += job.paused && job.seq ? job.computed : 0;
    return static_cast<std::uint32_t>(n);
  }

  void check(const Plan& plan, const std::vector<GenerationView>& views) {
    std::set<GenerationId> seen;
    const auto once = [&](GenerationId id) { EXPECT_TRUE(seen.insert(id).second) << id << " is planned twice"; };
    for (const GenerationId id : plan.decode) once(id);
    for (const GenerationId id : plan.admit) once(id);
    for (const GenerationId id : plan.preempt) once(id);
    Position n_prefill = 0;
    for (const PrefillChunk& chunk : plan.prefill) {
      once(chunk.id);
      n_prefill += chunk.n_rows;
      const Job& job = jobs_.at(chunk.id);
      const bool is_whole = chunk.n_rows == job.wanted - job.computed;
      ASSERT_TRUE(is_whole || plan.prefill.size() == 1) << "a part beside others";
    }
    ASSERT_LE(n_prefill, plan.prefill.size() > 1 ? std::min(limits_.n_prefill_rows, limits_.n_prefill_rows_shared)
                                                 : std::max(limits_.n_prefill_rows, limits_.n_prefill_rows_shared));
    n_together += plan.prefill.size() > 1 ? 1 : 0;
    ASSERT_LE(plan.decode.size(), static_cast<std::size_t>(limits_.n_decode_rows));
    ASSERT_LE(plan.preempt.size(), 1u);
    for (const GenerationId id : plan.preempt) {
      const Job& victim = jobs_.at(id);
      const bool somebody_is_senior = std::any_of(views.begin(), views.end(), [&](const GenerationView& view) {
        return view.running && std::tuple(-view.priority, view.arrival, raw(view.id)) <
                                   std::tuple(-victim.priority, victim.arrival, raw(id));
      });
      ASSERT_TRUE(somebody_is_senior) << "the most senior gave way";
    }
    if (!plan.preempt.empty() || plan.out_of_cells) return;
    for (const GenerationView& view : views)
      if (view.running && view.wanted - view.computed == 1 && !seen.contains(view.id))
        longest_gap = std::max(longest_gap, now_ - view.last_planned);
  }

  void apply(const Plan& plan) {
    for (const SeqId seq : plan.evict) {
      cached_.erase(seq);
      release(seq);
      ++n_evicted;
    }
    for (const GenerationId id : plan.preempt) {
      leave(jobs_.at(id));
      ++jobs_.at(id).n_preempted;
      ++n_preempted;
    }
    for (const GenerationId id : plan.admit) {
      Job& job = jobs_.at(id);
      const auto match = find(job);
      job.seq = ids_.take();
      ASSERT_TRUE(job.seq) << "admitted without a sequence id";
      if (job.admitted == Instant{}) job.admitted = now_;
      if (!match) continue;
      ledger_.share(match->seq, *job.seq, match->n_tokens);
      job.computed = match->n_tokens;
      n_shared += match->n_tokens;
    }
    std::vector<KvLedger::Placement> rows;
    for (const GenerationId id : plan.decode) rows.push_back({*jobs_.at(id).seq, jobs_.at(id).computed});
    ASSERT_NO_FATAL_FAILURE(place(rows));
    for (const GenerationId id : plan.decode) advance(id, 1);
    rows.clear();
    for (const PrefillChunk& chunk : plan.prefill) {
      const Job& job = jobs_.at(chunk.id);
      for (Position i = 0; i < chunk.n_rows; ++i) rows.push_back({*job.seq, job.computed + i});
    }
    ASSERT_NO_FATAL_FAILURE(place(rows));
    for (const PrefillChunk& chunk : plan.prefill) advance(chunk.id, chunk.n_rows);
    if (plan.out_of_cells) {
      ++n_out_of_cells;
      const auto paused = std::find_if(jobs_.begin(), jobs_.end(),
                                       [](const auto& entry) { return entry.second.paused && entry.second.seq; });
      paused != jobs_.end() ? leave(paused->second) : finish(*plan.out_of_cells);
    }
  }

  void place(const std::vector<KvLedger::Placement>& rows) {
    if (rows.empty()) return;
    const auto slot = ledger_.find_slot(static_cast<std::uint32_t>(rows.size()));
    ASSERT_TRUE(slot) << "more rows than cells";
    ledger_.place(*slot, rows);
  }

  void advance(GenerationId id, Position n_rows) {
    Job& job = jobs_.at(id);
    job.last_planned = now_;
    job.computed += n_rows;
    const auto computed = std::span(job.tokens).first(static_cast<std::size_t>(job.computed));
    tree_.contains(*job.seq) ? tree_.extend(*job.seq, computed) : tree_.insert(*job.seq, computed);
    if (job.computed < job.wanted) return;
    if (job.wanted == std::ssize(job.tokens)) return finish(id);
    ++job.wanted;
  }

  // Its cells become cached ones.
  void leave(Job& job) {
    if (job.computed > 0)
      cached_.emplace(*job.seq, now_);
    else
      release(*job.seq);
    job.seq.reset();
    job.computed = 0;
  }
  void finish(GenerationId id) {
    leave(jobs_.at(id));
    jobs_.erase(id);
    ++n_finished;
  }
  void release(SeqId seq) {
    ledger_.trim(seq, 0);
    tree_.truncate(seq, 0);
    ids_.give_back(seq);
  }

  PlanLimits limits_;
  KvLedger ledger_;
  SequenceIds ids_;
  PrefixTree tree_;
  std::map<SeqId, Instant> cached_;
  std::map<GenerationId, Job> jobs_;
  Instant now_{1};
};

Job make_job(std::uint64_t id, Position n_prompt, Position n_generated, int first_token) {
  Job job;
  job.id = GenerationId{id};
  job.n_prompt = n_prompt;
  for (Position i = 0; i < n_prompt + n_generated; ++i)
    job.tokens.push_back(TokenId{i < n_prompt / 2 ? i : first_token * 1000 + i});
  return job;
}

TEST(PlanSimulation, EveryPlanIsPossibleAndEverybodyFinishes) {
  int n_evicted = 0, n_preempted = 0, n_shared = 0, n_out_of_cells = 0, n_together = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto draw = [&](int n) { return static_cast<int>(random() % static_cast<std::uint64_t>(n)); };
    PlanLimits limits;
    limits.n_decode_rows = 1 + draw(6);
    limits.n_prefill_rows = 4 + draw(20);
    limits.n_prefill_rows_shared = 1 + draw(2 * limits.n_prefill_rows);
    limits.overdue_after = milliseconds(100 + draw(1000));
    const int n_cells = 60 + draw(300);
    World world(static_cast<std::uint32_t>(n_cells), 3 + draw(20), limits);
    int n_jobs = 0;
    for (int turn = 0; turn < 600; ++turn) {
      if (draw(6) == 0 && world.jobs().size() < 30) {
        Job job = make_job(static_cast<std::uint64_t>(++n_jobs), 1 + draw(n_cells / 2), 1 + draw(n_cells / 3), draw(5));
        job.priority = draw(3);
        world.add(std::move(job));
      }
      if (!world.jobs().empty() && draw(10) == 0) {
        Job& job = std::next(world.jobs().begin(), draw(static_cast<int>(world.jobs().size())))->second;
        job.paused = !job.paused;
      }
      ASSERT_NO_FATAL_FAILURE(world.turn());
    }
    for (auto& [id, job] : world.jobs()) job.paused = false;
    for (int turn = 0; turn < 60000 && !world.jobs().empty(); ++turn) ASSERT_NO_FATAL_FAILURE(world.turn());
    ASSERT_TRUE(world.jobs().empty()) << "somebody never finished";
    n_evicted += world.n_evicted;
    n_preempted += world.n_preempted;
    n_shared += world.n_shared;
    n_together += world.n_together;
    n_out_of_cells += world.n_out_of_cells;
  }
  EXPECT_GT(n_evicted, 1000);
  EXPECT_GT(n_preempted, 100);
  EXPECT_GT(n_shared, 10000);
  EXPECT_GT(n_together, 20);
  EXPECT_GT(n_out_of_cells, 5);
}

// The bound of plan.h: overdue_after, and the time what runs by then still takes.
TEST(PlanSimulation, ABigRequestIsNotStarvedBySmallOnes) {
  PlanLimits limits;
  limits.overdue_after = seconds(1);
  World world(400, 64, limits);
  constexpr Position kSmallTokens = 20 + 40;
  std::uint64_t n_jobs = 1000;
  bool is_admitted = false;
  for (int turn = 0; turn < 400 && !is_admitted; ++turn) {
    if (turn == 20) world.add(make_job(1, 300, 20, 1));
    // Enough small ones, of higher priority, that the pool is never without them.
    for (int i = 0; i < 2; ++i) {
      ++n_jobs;
      world.add(make_job(n_jobs, 20, 40, static_cast<int>(n_jobs % 500) + 2));
      world.jobs().at(GenerationId{n_jobs}).priority = 1;
    }
    ASSERT_NO_FATAL_FAILURE(world.turn());
    const auto big = world.jobs().find(GenerationId{1});
    is_admitted = big != world.jobs().end() && big->second.admitted != Instant{};
    if (!is_admitted) continue;
    const Duration waited = big->second.admitted - big->second.arrival;
    EXPECT_GT(waited, milliseconds(500)) << "nothing was in its way: the test shows nothing";
    // Those before it in the queue of overdue ones, and those that run, are done after a few of their lifetimes.
    EXPECT_LT(waited, seconds(1) + Duration{8 * kSmallTokens * kTurn.ns});
  }
  EXPECT_TRUE(is_admitted);
}

TEST(PlanSimulation, NoStreamWaitsForMoreThanItsTurn) {
  PlanLimits limits;
  limits.n_decode_rows = 4;
  World world(4000, 64, limits);
  for (std::uint64_t i = 1; i <= 10; ++i) world.add(make_job(i, 2, 200, static_cast<int>(i)));
  for (int turn = 0; turn < 200; ++turn) {
    if (turn == 50) world.add(make_job(99, 2000, 5, 99));  // a long prompt
    ASSERT_NO_FATAL_FAILURE(world.turn());
  }
  EXPECT_LE(world.longest_gap, Duration{3 * kTurn.ns});  // ceil(11 streams / 4 rows)
}

TEST(PlanSimulation, WhoGaveWayComesBackOnlyWhenThereIsRoom) {
  for (const bool share_prompt : {false, true}) {
    World world(100, 16, {});
    for (std::uint64_t i = 1; i <= 2; ++i) {
      Job job = make_job(i, 30, 60, static_cast<int>(i));
      if (!share_prompt) job.tokens[0] = TokenId{-static_cast<int>(i)};
      world.add(std::move(job));
    }
    for (int turn = 0; turn < 400 && !world.jobs().empty(); ++turn) ASSERT_NO_FATAL_FAILURE(world.turn());
    EXPECT_TRUE(world.jobs().empty());
    // What it shares with the other counts as room, so with a common prompt it comes back a second time.
    EXPECT_LE(world.n_preempted, share_prompt ? 2 : 1);
  }
}

}  // namespace
}  // namespace fermata
