#include "scheduler/plan.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace fermata {

namespace {

using View = const GenerationView*;

// More senior: larger priority, then earlier arrival.
bool senior(View a, View b) {
  return std::tuple(-std::int64_t{a->priority}, a->arrival, raw(a->id)) <
         std::tuple(-std::int64_t{b->priority}, b->arrival, raw(b->id));
}

bool waited_longer(View a, View b) {
  return std::tuple(a->last_planned, a->arrival, raw(a->id)) < std::tuple(b->last_planned, b->arrival, raw(b->id));
}

Position n_missing(View view) { return view->wanted - view->computed; }

// Free cells and sequence ids of the turn, and what evicting cached sequences adds to them. Evicts only prefixes of the
// list, which is what makes the counts of CachedView true.
//
//   cached   | evicted this turn |     may be evicted     |  kept: sources of who is admitted this turn  |
//            0               n_evicted_             n_evictable_                                 cached.size()
class Supply {
 public:
  explicit Supply(const PoolView& pool)
      : cached_(pool.cached), n_free_(pool.n_free), n_ids_(pool.n_seqs_free), n_evictable_(pool.cached.size()) {
    n_freed_.reserve(cached_.size() + 1);
    n_freed_.push_back(0);
    for (const CachedView& cached : cached_) n_freed_.push_back(n_freed_.back() + cached.n_exclusive);
  }

  // Free cells, counting those that can be evicted.
  std::int64_t n_cells() const { return n_cells_within(n_evictable_); }
  bool has_id() const { return has_id_within(n_evictable_); }

  // Precondition: n <= n_cells(). Evicts until n cells are free, and uses them.
  void take_cells(std::int64_t n) {
    while (n_free_ < n) evict_next();
    n_free_ -= n;
  }

  // Takes a sequence id for a generation whose source is `seq`, which is kept. False, with nothing changed, if there is
  // none, or if fewer than n_cells_min cells would be left, or if `seq` is evicted already.
  bool take_id_keeping(SeqId seq, std::int64_t n_cells_min) {
    std::size_t at = 0;
    while (at < cached_.size() && cached_[at].seq != seq) ++at;
    return at >= n_evicted_ && take_id_within(std::min(at, n_evictable_), n_cells_min);
  }
  bool take_id(std::int64_t n_cells_min) { return take_id_within(n_evictable_, n_cells_min); }

  std::vector<SeqId> evicted() const {
    std::vector<SeqId> seqs;
    for (const CachedView& cached : cached_.first(n_evicted_)) seqs.push_back(cached.seq);
    return seqs;
  }

 private:
  std::int64_t n_cells_within(std::size_t n_evictable) const {
    return n_free_ + n_freed_[n_evictable] - n_freed_[n_evicted_];
  }
  bool has_id_within(std::size_t n_evictable) const { return n_ids_ > 0 || n_evicted_ < n_evictable; }
  bool take_id_within(std::size_t n_evictable, std::int64_t n_cells_min) {
    if (!has_id_within(n_evictable) || n_cells_within(n_evictable) < n_cells_min) return false;
    n_evictable_ = n_evictable;
    if (n_ids_ == 0) evict_next();
    --n_ids_;
    return true;
  }
  void evict_next() {
    FERMATA_CHECK_LT(n_evicted_, n_evictable_);
    n_free_ += cached_[n_evicted_++].n_exclusive;
    ++n_ids_;
  }

  std::span<const CachedView> cached_;
  std::vector<std::int64_t> n_freed_;  // [i]: cells that evicting the first i would free
  std::int64_t n_free_;
  std::int64_t n_ids_;
  std::size_t n_evicted_ = 0;
  std::size_t n_evictable_;
};

struct Sorted {
  std::vector<View> decoding;  // running, one token to compute
  std::vector<View> filling;   // running, more than one
  std::vector<View> running;   // all, also those with nothing to compute
  std::vector<View> queued;
};

Sorted sort_out(std::span<const GenerationView> generations) {
  Sorted sorted;
  for (const GenerationView& view : generations) {
    FERMATA_CHECK(!(view.queued && view.running));
    FERMATA_CHECK_LE(0, view.computed);
    FERMATA_CHECK_LE(view.computed, view.wanted);
    if (view.queued) sorted.queued.push_back(&view);
    if (!view.running) continue;
    sorted.running.push_back(&view);
    if (n_missing(&view) == 1) sorted.decoding.push_back(&view);
    if (n_missing(&view) > 1) sorted.filling.push_back(&view);
  }
  return sorted;
}

// Who has a row this turn, if cells allow it.
void choose_decoding(std::vector<View>& decoding, const PlanLimits& limits) {
  const auto n_rows = static_cast<std::size_t>(limits.n_decode_rows);
  if (decoding.size() > n_rows) {
    std::nth_element(decoding.begin(), decoding.begin() + static_cast<std::ptrdiff_t>(n_rows), decoding.end(),
                     waited_longer);
    decoding.resize(n_rows);
  }
  std::sort(decoding.begin(), decoding.end(), senior);
}

View choose_filling(const std::vector<View>& filling, const PlanLimits& limits, Instant now) {
  const auto sooner = [&](View a, View b) {
    const auto since = [](View v) { return std::max(v->last_planned, v->arrival); };
    const bool a_overdue = now - since(a) >= limits.overdue_after;
    const bool b_overdue = now - since(b) >= limits.overdue_after;
    if (a_overdue != b_overdue) return a_overdue;
    if (!a_overdue && a->priority != b->priority) return a->priority > b->priority;
    return waited_longer(a, b);
  };
  const auto first = std::min_element(filling.begin(), filling.end(), sooner);
  return first == filling.end() ? nullptr : *first;
}

// Gives rows to what runs. False if cells were short.
bool plan_rows(Sorted& sorted, const PlanLimits& limits, Instant now, Supply& supply, Plan& plan) {
  choose_decoding(sorted.decoding, limits);
  const auto n_decoding = static_cast<std::int64_t>(sorted.decoding.size());
  const std::int64_t n_rows = std::min(n_decoding, supply.n_cells());
  supply.take_cells(n_rows);
  for (std::int64_t i = 0; i < n_rows; ++i) plan.decode.push_back(sorted.decoding[static_cast<std::size_t>(i)]->id);

  const View next = choose_filling(sorted.filling, limits, now);
  if (next == nullptr) return n_rows == n_decoding;
  const std::int64_t n_chunk_max = n_decoding > 0 ? limits.n_prefill_rows_shared : limits.n_prefill_rows;
  const std::int64_t n_chunk = std::min({std::int64_t{n_missing(next)}, n_chunk_max, supply.n_cells()});
  if (n_chunk <= 0) return false;
  supply.take_cells(n_chunk);
  plan.prefill = PrefillChunk{next->id, static_cast<Position>(n_chunk)};
  return n_rows == n_decoding;
}

void plan_preemption(const std::vector<View>& running, Plan& plan) {
  if (running.size() < 2) {
    plan.out_of_cells = running.front()->id;
    return;
  }
  const View victim = *std::max_element(running.begin(), running.end(), senior);
  plan.preempt.push_back(victim->id);
  std::erase(plan.decode, victim->id);
  if (plan.prefill && plan.prefill->id == victim->id) plan.prefill.reset();
}

// Gives `next` a sequence id if it has room beside n_claimed cells; its own claim is added to them.
bool admit_one(View next, const PlanLimits& limits, Supply& supply, std::int64_t& n_claimed) {
  const std::int64_t n_ahead = n_claimed > 0 ? limits.n_rows_ahead - 1 : 0;
  std::int64_t n_room = next->n_room_min + n_ahead;
  bool admitted = false;
  if (next->source) {
    admitted = supply.take_id_keeping(*next->source, n_claimed + n_room);
    if (!admitted) n_room = next->wanted + 1 + n_ahead;
  }
  if (!admitted) admitted = supply.take_id(n_claimed + n_room);
  if (admitted) n_claimed += n_room;
  return admitted;
}

void plan_admissions(Sorted& sorted, const PoolView& pool, const PlanLimits& limits, Instant now, Supply& supply,
                     Plan& plan) {
  // What runs will want after this turn, whose rows are taken already.
  std::int64_t n_claimed = 0;
  for (const View view : sorted.running) n_claimed += n_missing(view) + limits.n_rows_ahead;
  n_claimed -= static_cast<std::int64_t>(plan.decode.size()) + (plan.prefill ? plan.prefill->n_rows : 0);
  if (!supply.has_id() || supply.n_cells() <= n_claimed) return;  // a full pool does not even sort its queue

  const auto overdue = [&](View view) { return now - view->arrival >= limits.overdue_after; };
  std::sort(sorted.queued.begin(), sorted.queued.end(), [&](View a, View b) {
    if (overdue(a) != overdue(b)) return overdue(a);
    if (overdue(a)) return std::tuple(a->arrival, raw(a->id)) < std::tuple(b->arrival, raw(b->id));
    return senior(a, b);
  });
  const std::int64_t n_cells_at_best = std::int64_t{pool.n_cells} - pool.n_pinned;
  for (const View view : sorted.queued) {
    if (admit_one(view, limits, supply, n_claimed)) {
      plan.admit.push_back(view->id);
    } else if (overdue(view) && view->n_room_min <= n_cells_at_best) {
      return;
    }
  }
}

}  // namespace

Plan make_plan(std::span<const GenerationView> generations, const PoolView& pool, const PlanLimits& limits,
               Instant now) {
  FERMATA_CHECK_LE(1, limits.n_decode_rows);
  FERMATA_CHECK_LE(1, limits.n_prefill_rows_shared);
  FERMATA_CHECK_LE(1, limits.n_rows_ahead);
  FERMATA_CHECK_LE(limits.n_prefill_rows_shared, limits.n_prefill_rows);
  Sorted sorted = sort_out(generations);
  Supply supply(pool);
  Plan plan;
  if (plan_rows(sorted, limits, now, supply, plan)) {
    plan_admissions(sorted, pool, limits, now, supply, plan);
  } else {
    plan_preemption(sorted.running, plan);
  }
  plan.evict = supply.evicted();
  return plan;
}

}  // namespace fermata
