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

bool is_overdue(const GenerationView& view, const PlanLimits& limits, Instant now) {
  return now - view.arrival >= limits.overdue_after;
}

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
  std::vector<View> restoring;  // running, pages are outside
  std::vector<View> decoding;   // running, one token to compute
  std::vector<View> filling;    // running, more than one
  std::vector<View> running;    // all, also those with nothing to compute
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
    FERMATA_CHECK_LE(view.n_page_rows, view.n_outside);
    sorted.running.push_back(&view);
    if (view.n_page_rows > 0) {
      sorted.restoring.push_back(&view);
      continue;
    }
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

bool had_nothing_for_long(View view, const PlanLimits& limits, Instant now) {
  return now - std::max(view->last_planned, view->arrival) >= limits.overdue_after;
}

// Whose page is next.
View choose_restoring(const std::vector<View>& restoring, const PlanLimits& limits, Instant now) {
  const auto sooner = [&](View a, View b) {
    const bool a_overdue = had_nothing_for_long(a, limits, now);
    if (a_overdue != had_nothing_for_long(b, limits, now)) return a_overdue;
    if (!a_overdue && a->priority != b->priority) return a->priority > b->priority;
    return waited_longer(a, b);
  };
  const auto first = std::min_element(restoring.begin(), restoring.end(), sooner);
  return first == restoring.end() ? nullptr : *first;
}

bool shorter(View a, View b) { return n_missing(a) != n_missing(b) ? n_missing(a) < n_missing(b) : senior(a, b); }

// Whose chunk is next.
View choose_filling(const std::vector<View>& filling, const PlanLimits& limits, Instant now) {
  if (filling.empty()) return nullptr;
  const View oldest = *std::min_element(filling.begin(), filling.end(), senior);
  View shortest = oldest;
  View neglected = nullptr;  // of a smaller priority
  for (const View view : filling) {
    if (view->priority == oldest->priority) {
      shortest = std::min(shortest, view, shorter);
    } else if (had_nothing_for_long(view, limits, now)) {
      neglected = neglected ? std::min(neglected, view, waited_longer) : view;
    }
  }
  if (neglected) return neglected;
  return waited_longer(oldest, shortest) ? oldest : shortest;
}

// Each gives something to what runs; false if cells were short.
bool plan_decode(std::vector<View>& decoding, const PlanLimits& limits, Supply& supply, Plan& plan) {
  choose_decoding(decoding, limits);
  const auto n_decoding = static_cast<std::int64_t>(decoding.size());
  const std::int64_t n_rows = std::min(n_decoding, supply.n_cells());
  supply.take_cells(n_rows);
  for (std::int64_t i = 0; i < n_rows; ++i) plan.decode.push_back(decoding[static_cast<std::size_t>(i)]->id);
  return n_rows == n_decoding;
}

bool plan_page_in(View next, Supply& supply, Plan& plan) {
  if (next == nullptr) return true;
  if (supply.n_cells() < next->n_page_rows) return false;
  supply.take_cells(next->n_page_rows);
  plan.page_in = next->id;
  return true;
}

std::int64_t chunk_rows(const Sorted& sorted, const PlanLimits& limits) {
  const bool others_wait = sorted.filling.size() > 1;
  return sorted.decoding.empty() || others_wait ? limits.n_prefill_rows : limits.n_prefill_rows_shared;
}

bool plan_prefill(View next, std::int64_t n_chunk_max, Supply& supply, Plan& plan) {
  if (next == nullptr) return true;
  const std::int64_t n_chunk = std::min({std::int64_t{n_missing(next)}, n_chunk_max, supply.n_cells()});
  if (n_chunk <= 0) return false;
  supply.take_cells(n_chunk);
  plan.prefill.push_back({next->id, static_cast<Position>(n_chunk)});
  return true;
}

// Prompts that go along with the first in its step, each whole.
void plan_more_prefill(std::vector<View>& filling, View first, const PlanLimits& limits, Supply& supply, Plan& plan) {
  if (filling.size() < 2 || plan.prefill.empty()) return;
  std::int64_t n_left =
      std::int64_t{std::min(limits.n_prefill_rows, limits.n_prefill_rows_shared)} - plan.prefill.front().n_rows;
  if (n_left <= 1 || plan.prefill.front().n_rows < n_missing(first)) return;
  std::erase_if(filling, [&](View view) { return view == first || view->priority != first->priority; });
  std::sort(filling.begin(), filling.end(), shorter);
  for (const View view : filling) {
    if (n_missing(view) > std::min(n_left, supply.n_cells())) return;
    n_left -= n_missing(view);
    supply.take_cells(n_missing(view));
    plan.prefill.push_back({view->id, n_missing(view)});
  }
}

bool plan_rows(Sorted& sorted, const PlanLimits& limits, Instant now, Supply& supply, Plan& plan) {
  const bool all_decode = plan_decode(sorted.decoding, limits, supply, plan);
  const bool page_fits = plan_page_in(choose_restoring(sorted.restoring, limits, now), supply, plan);
  const View filling = choose_filling(sorted.filling, limits, now);
  const bool chunk_fits = plan_prefill(filling, chunk_rows(sorted, limits), supply, plan);
  plan_more_prefill(sorted.filling, filling, limits, supply, plan);
  return all_decode && page_fits && chunk_fits;
}

void plan_preemption(const std::vector<View>& running, Plan& plan) {
  if (running.size() < 2) {
    plan.out_of_cells = running.front()->id;
    return;
  }
  const View victim = *std::max_element(running.begin(), running.end(), senior);
  plan.preempt.push_back(victim->id);
  std::erase(plan.decode, victim->id);
  if (plan.page_in == victim->id) plan.page_in.reset();
  std::erase_if(plan.prefill, [&](const PrefillChunk& chunk) { return chunk.id == victim->id; });
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

// Cells that running generations will want after this turn, whose own are taken already.
std::int64_t n_claimed_after(const std::vector<View>& running, const PlanLimits& limits, const Plan& plan) {
  std::int64_t n_claimed = 0;
  for (const View view : running) {
    n_claimed += n_missing(view) + view->n_outside + limits.n_rows_ahead;
    if (plan.page_in == view->id) n_claimed -= view->n_page_rows;
  }
  for (const PrefillChunk& chunk : plan.prefill) n_claimed -= chunk.n_rows;
  return n_claimed - static_cast<std::int64_t>(plan.decode.size());
}

void plan_admissions(Sorted& sorted, const PoolView& pool, const PlanLimits& limits, Instant now, Supply& supply,
                     Plan& plan) {
  const auto overdue = [&](View view) { return is_overdue(*view, limits, now); };
  std::int64_t n_claimed = n_claimed_after(sorted.running, limits, plan);
  if (!supply.has_id() || supply.n_cells() <= n_claimed) {  // a full pool does not even sort its queue
    plan.wants_parking = pool.n_pinned > 0 && std::any_of(sorted.queued.begin(), sorted.queued.end(), overdue);
    return;
  }
  std::sort(sorted.queued.begin(), sorted.queued.end(),
            [&](View a, View b) { return admitted_before(*a, *b, limits, now); });
  const std::int64_t n_cells_at_best = std::int64_t{pool.n_cells} - pool.n_pinned;
  for (const View view : sorted.queued) {
    if (admit_one(view, limits, supply, n_claimed)) {
      plan.admit.push_back(view->id);
      continue;
    }
    if (!overdue(view)) continue;
    plan.wants_parking = pool.n_pinned > 0;
    if (view->n_room_min <= n_cells_at_best) return;
  }
}

}  // namespace

bool admitted_before(const GenerationView& a, const GenerationView& b, const PlanLimits& limits, Instant now) {
  const bool a_overdue = is_overdue(a, limits, now);
  if (a_overdue != is_overdue(b, limits, now)) return a_overdue;
  if (a_overdue) return std::tuple(a.arrival, raw(a.id)) < std::tuple(b.arrival, raw(b.id));
  return senior(&a, &b);
}

Plan make_plan(std::span<const GenerationView> generations, const PoolView& pool, const PlanLimits& limits,
               Instant now) {
  FERMATA_CHECK_LE(1, limits.n_decode_rows);
  FERMATA_CHECK_LE(1, limits.n_prefill_rows_shared);
  FERMATA_CHECK_LE(1, limits.n_rows_ahead);
  FERMATA_CHECK_LE(1, limits.n_prefill_rows);
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
