#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/limits.h"

namespace fermata {

// What the plan may know of a generation.
struct GenerationView {
  GenerationId id = kNoGeneration;
  bool queued = false;   // waits for admission
  bool running = false;  // may be given rows
  Position wanted = 0;
  Position computed = 0;
  // Running, but some of its pages are outside the pool: it gets no rows until they are in, one a turn.
  Position n_outside = 0;       // tokens of all of them
  Position n_page_rows = 0;     // tokens of the next one, which comes in whole
  Position n_room_min = 0;      // queued: cells it needs to be worth admitting (prompt not found in the pool + one)
  std::optional<SeqId> source;  // queued: the cached sequence that n_room_min counts on; it is not evicted first
  std::int32_t priority = 0;    // larger is sooner
  Instant arrival;              // into the queue, the first time: a preempted one keeps its age
  Instant last_planned;         // when it last had rows; before that its arrival, or 0
};

// What stays in the pool only as prefix cache.
struct CachedView {
  SeqId seq{};
  // Cells that evicting it would free after all that stand before it in the list (KvLedger::freed_by): cells that two
  // cached sequences share are counted with the later one.
  std::uint32_t n_exclusive = 0;
  Instant last_used;
};

struct PoolView {
  std::uint32_t n_cells = 0;
  std::uint32_t n_free = 0;
  std::int32_t n_seqs_free = 0;
  // Least recently used first; those that are the source of a queued generation last (finding a prefix is a use).
  std::span<const CachedView> cached;
  // Cells owned by sequences that neither run nor are cached (paused ones).
  std::uint32_t n_pinned = 0;
};

struct PlanLimits {
  std::int32_t n_decode_rows = limits::kDecodeRowsMax;
  std::int32_t n_prefill_rows = limits::kPrefillRowsMax;            // nobody waits for a token, or prompts wait
  std::int32_t n_prefill_rows_shared = limits::kPrefillRowsShared;  // of the only prompt beside running streams
  std::int32_t n_rows_ahead = 8;        // cells left to each running generation when another is admitted
  Duration overdue_after = seconds(5);  // see the rules below
};

struct PrefillChunk {
  GenerationId id = kNoGeneration;
  Position n_rows = 0;
  bool operator==(const PrefillChunk&) const = default;
};

// One turn of the loop, to be applied in the order of its fields. Decode rows and the prefill chunk go to the engine in
// calls of their own: decode first.
struct Plan {
  std::vector<SeqId> evict;             // before anything else
  std::vector<GenerationId> preempt;    // a running one that must give way; at most one
  std::vector<GenerationId> admit;      // in this order
  std::vector<GenerationId> decode;     // one row each: exactly one token is wanted and not computed
  std::optional<GenerationId> page_in;  // its next page comes in
  std::vector<PrefillChunk> prefill;    // all in one step; several only if each is all that its prompt lacks
  // The only running generation wants a row, and there is no cell for it in the whole pool: nobody is left who could
  // give way. What is paused must be parked; if nothing is, the pool has ended for it.
  std::optional<GenerationId> out_of_cells;
  // An overdue one is not admitted, and what is paused owns cells: that should be parked. Not an act of this turn.
  bool wants_parking = false;
  // Nothing to apply. (out_of_cells and wants_parking are not for the pool or the engine: whoever applies plans looks
  // at them as well.)
  bool idle() const {
    return evict.empty() && admit.empty() && decode.empty() && !page_in && prefill.empty() && preempt.empty();
  }
};

// Pure: the same view gives the same plan, whatever the order of the generations in it. Cost: linear, plus the sorting
// of what is queued or running. The rules:
//
// Seniority. Larger priority, then earlier arrival, then smaller id.
//
// Decode. Every running generation with exactly one token to compute gets a row. If they are more than n_decode_rows,
//   those that waited longest (last_planned) come first, so each has a row at least every
//   ceil(n_decoding / n_decode_rows) turns. If cells are short, the most senior of them get the cells.
// Prefill. One running generation with more than one token to compute gets a chunk: of those with the largest priority
//   by turns the one with the fewest tokens left and the one that came first. Of prompts that came together one after
//   the other is finished (by turns they would all be finished last), a short one overtakes long ones, and the first
//   has half of all chunks however many short ones come. One of a smaller priority that had no rows for
//   `overdue_after` goes first. The chunk has n_prefill_rows;
//   beside a decode row it has n_prefill_rows_shared, unless another prompt waits behind it: what a stream waits for
//   one chunk is small against what all prompts wait, and many small chunks take longer than few large ones. For the
//   same reason short prompts of the same priority are computed in one step, the shortest first, as long as all of each
//   fits into n_prefill_rows_shared rows together. A long prompt costs a stream at most one chunk per token. Decode
//   takes its cells first.
// Page in. One running generation whose pages are outside gets the next of them: of those with the largest priority the
//   one that waited longest (round robin); one that had nothing for `overdue_after` goes first whatever its priority.
// Evict. Cached sequences go least recently used first, and only as many as the rows and admissions of this turn need.
// Preempt. If a generation that should have rows or a page gets none for want of cells that are free or can be evicted,
// the
//   least senior running generation gives way: one per turn, since only the next view shows what that freed; until
//   then the most senior go on with the cells there are. The most senior never gives way, so it ends some day and
//   frees its cells. Nobody is admitted in such a turn.
// Admit. Queued generations in the order: overdue ones (waiting for `overdue_after` since arrival) by arrival, then the
//   others by seniority. One is admitted if a sequence id is free (or can be evicted) and its n_room_min fits into
//   free + evictable cells beside all tokens that running generations want already; and if others run, with
//   n_rows_ahead more for each of them and itself, so that equals do not throw each other out in turns. Its source is
//   kept for it; if it fits only by evicting that, it is admitted with room for all of its tokens. One that does not
//   fit is passed by, unless it is overdue: then nobody behind it is admitted. So a big request waits at most
//   overdue_after + the remaining time of what runs by then and of what was overdue before it, however many small ones
//   arrive. (If what is paused leaves too few cells even when nobody runs, it holds up nobody: it waits for them, not
//   for its turn; wants_parking says that they should go.)
Plan make_plan(std::span<const GenerationView> generations, const PoolView& pool, const PlanLimits& limits,
               Instant now);

// The order in which queued generations are admitted.
bool admitted_before(const GenerationView& a, const GenerationView& b, const PlanLimits& limits, Instant now);

}  // namespace fermata
