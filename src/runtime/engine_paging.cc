// How generations give up their cells under pressure, and get them back. The rest of the loop is in engine_loop.cc.
//
//   gives way ─► leaves: a page goes out each turn ─► out: holds no cells ─► admitted ─► restoring: a page comes in
//                        (a resume calls it off)                                         each turn ─► running
#include "base/check.h"
#include "runtime/engine_loop.h"

namespace fermata {

// A paused one first, then one whose reader is slow: that goes on by itself when its reader does.
bool EngineLoop::park_one() {
  Live* paused = nullptr;
  Live* stalled = nullptr;
  roster_.for_each([&](Live& live) {
    if (!live.seq || live.leaves) return;
    if (!paused && live.is(State::kPaused) && live.inspections.empty()) paused = &live;
    if (!stalled && live.is(State::kRunning) && live.reader_is_slow()) stalled = &live;
  });
  if (!paused && !stalled) return false;
  give_way(paused ? *paused : *stalled);
  stats_.n_parked.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// Its cells go. It is admitted again as soon as there is room; or, if it was paused already, when it is resumed.
void EngineLoop::give_way(Live& live) {
  live.leaves = true;
  if (live.is(State::kPaused)) return frozen_point_is_read(live);  // as far as it can be
  freeze(live, WaitReason::kPreempted);
  live.comes_back = true;
}

void EngineLoop::on_out_of_cells(Live& live) {
  if (live.is(State::kPaused)) return give_way(live);
  end(live, EndReason::kLength);
}

bool EngineLoop::somebody_leaves() {
  bool leaves = false;
  roster_.for_each([&](Live& live) { leaves = leaves || live.leaves; });
  return leaves;
}

// The next page of the first that leaves. If memory for pages is full, all of it goes: it is computed again then.
void EngineLoop::page_out() {
  Live* leaving = nullptr;
  std::size_t bytes = 0;
  roster_.for_each([&](Live& live) {
    bytes += live.pages.bytes();
    if (!leaving && live.leaves) leaving = &live;
  });
  if (!leaving) return;
  if (leaving->n_in_pool() > 0) {
    if (bytes >= options_.page_bytes_max || !pager_.out(*leaving->seq, leaving->n_in_pool(), leaving->pages)) {
      stats_.n_pages_dropped.fetch_add(1, std::memory_order_relaxed);
      return leave_pool(*leaving);
    }
    stats_.n_pages_out.fetch_add(1, std::memory_order_relaxed);
    pool_.take_back(*leaving->seq, leaving->pages.begin());
  }
  if (leaving->n_in_pool() > 0) return;
  pool_.release(*leaving->seq);
  leaving->seq.reset();
  leaving->leaves = false;
}

// What a paused one left in the pool or in pages is still true: it goes on from there.
void EngineLoop::go_on(Live& live) {
  live.leaves = false;
  const Instant now = clock_.now();
  if (!live.seq) {
    FERMATA_CHECK(live.generation->apply(Trigger::kRequeue, WaitReason::kCells, now).has_value());
  } else if (live.pages.empty()) {
    FERMATA_CHECK(live.generation->apply(Trigger::kResume, WaitReason::kNone, now).has_value());
    pool_.publish(*live.seq, live.tokens_in_pool());
  } else {
    FERMATA_CHECK(live.generation->apply(Trigger::kStartRestore, WaitReason::kCells, now).has_value());
  }
}

// It has a sequence with the first n_cached of its tokens.
void EngineLoop::begin(Live& live, Pool::Admission admission) {
  Generation& generation = *live.generation;
  const Instant now = clock_.now();
  if (live.comes_back) {
    live.comes_back = false;
    FERMATA_CHECK(generation.apply(Trigger::kRequeue, WaitReason::kQueue, now).has_value());
  }
  live.seq = admission.seq;
  while (!live.pages.empty() && live.pages.top().end <= admission.n_cached) live.pages.pop();
  if (live.pages.empty()) {
    generation.trim_computed(0);
    generation.set_cached(admission.n_cached);
    FERMATA_CHECK(generation.apply(Trigger::kAdmit, WaitReason::kNone, now).has_value());
  } else {
    pool_.take_back(admission.seq, live.pages.begin());  // a page comes in whole
    FERMATA_CHECK(generation.apply(Trigger::kStartRestore, WaitReason::kCells, now).has_value());
  }
  stats_.n_cached_rows.fetch_add(static_cast<std::uint64_t>(live.n_in_pool()), std::memory_order_relaxed);
}

void EngineLoop::page_in(GenerationId id) {
  Live* live = roster_.find(id);
  if (!live || !live->is(State::kRestoring)) return;  // ended or was paused since the plan
  live->last_planned = clock_.now();
  if (pager_.in(*live->seq, live->pages)) {
    stats_.n_pages_in.fetch_add(1, std::memory_order_relaxed);
  } else {
    live->generation->trim_computed(live->n_in_pool());  // computed again
    live->pages.clear();
  }
  if (!live->pages.empty()) return;
  FERMATA_CHECK(live->generation->apply(Trigger::kEndRestore, WaitReason::kNone, clock_.now()).has_value());
  pool_.publish(*live->seq, live->tokens_in_pool());
}

}  // namespace fermata
