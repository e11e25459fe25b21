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
  Position n_room_min = 0;  // queued: cells it needs to be worth admitting (prompt not found in the pool + one)
  std::int32_t priority = 0;
  Instant arrival;       // into the queue
  Instant last_planned;  // when it last had a prefill chunk
};

// What stays in the pool only as prefix cache.
struct CachedView {
  SeqId seq{};
  std::uint32_t n_exclusive = 0;  // cells that evicting it would free
  Instant last_used;
};

struct PoolView {
  std::uint32_t n_cells = 0;
  std::uint32_t n_free = 0;
  std::int32_t n_seqs_free = 0;
  std::span<const CachedView> cached;  // least recently used first
};

struct PlanLimits {
  std::int32_t n_decode_rows = limits::kDecodeRowsMax;
  std::int32_t n_prefill_rows = limits::kPrefillRowsMax;            // nobody waits for a token
  std::int32_t n_prefill_rows_shared = limits::kPrefillRowsShared;  // beside running streams
};

struct PrefillChunk {
  GenerationId id = kNoGeneration;
  Position n_rows = 0;
};

// One turn of the loop. Decode rows and the prefill chunk go to the engine in calls of their own: decode first.
struct Plan {
  std::vector<SeqId> evict;             // before anything else
  std::vector<GenerationId> admit;      // in this order
  std::vector<GenerationId> decode;     // one row each: exactly one token is wanted and not computed
  std::optional<PrefillChunk> prefill;  // of one generation
  std::vector<GenerationId> preempt;    // running ones that must give way (no cells for everybody's next row)
  bool idle() const {
    return evict.empty() && admit.empty() && decode.empty() && !prefill.has_value() && preempt.empty();
  }
};

// Pure: the same view gives the same plan. Order among equals is by arrival, then id.
Plan make_plan(std::span<const GenerationView> generations, const PoolView& pool, const PlanLimits& limits,
               Instant now);

}  // namespace fermata
