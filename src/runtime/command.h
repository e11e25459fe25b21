#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/ring.h"
#include "engine/sampling/measures.h"
#include "generation/event.h"
#include "generation/generation.h"
#include "runtime/reply.h"

namespace fermata {

using EventRing = Ring<Event>;

// How a generation stands, as of the moment of the answer.
struct Status {
  GenerationId id = kNoGeneration;
  State state = State::kQueued;
  WaitReason wait_reason = WaitReason::kNone;
  EndReason end_reason = EndReason::kNone;
  Position n_prompt = 0;
  Position n_cached = 0;
  Position n_generated = 0;
  Position computed = 0;
  std::optional<std::uint32_t> ended_pause;  // of the answer to a resume: the pause that it ended, by its ordinal
};

// A look at a paused generation. Looking changes nothing that follows.
struct Inspection {
  Status status;
  std::vector<JournalRow> last_rows;  // the last ones, oldest first
  Position n_rows_sent = 0;           // journal rows from here on are held back: not for whoever reads the stream
  std::size_t n_bytes_held = 0;       // text held back at this point: then `next` is not for them either
  bool has_logits = false;            // the two below are known: not while the prompt is not computed
  std::vector<TokenLogprob> next;     // what could come, most likely first
  float next_entropy = 0;             // nats
};

// --- what the engine thread can be asked. Each is answered once through its reply.
struct Submit {
  std::unique_ptr<Generation> generation;  // state kQueued
  std::shared_ptr<EventRing> events;
  bool paused = false;  // it begins paused, as if its user had asked for that
};
struct Pause {
  GenerationId id = kNoGeneration;
  Reply<PauseRecord> reply;  // when the pause is reached; the same record again if it was already paused
  WaitReason reason = WaitReason::kUser;
};
// Which pause a resume is meant for; what it is not meant for goes on standing.
struct MeantPause {
  WaitReason reason = WaitReason::kNone;  // kNone: whatever it is
  std::optional<std::uint32_t> ordinal;   // none: whichever it is
};
struct Resume {
  GenerationId id = kNoGeneration;
  Reply<Status> reply;
  MeantPause meant;
};
struct Cancel {
  GenerationId id = kNoGeneration;
  EndReason reason = EndReason::kCancelled;
  Reply<Status> reply;  // a finished one answers with its end
};
struct Inspect {
  GenerationId id = kNoGeneration;
  std::int32_t n_rows = 16;
  std::int32_t n_next = 10;
  Reply<Inspection> reply;
};
// A paused generation as it stands, to make revisions and branches of.
struct TakeAnchor {
  GenerationId id = kNoGeneration;
  Reply<Anchor> reply;
};
// What a revision did.
struct Revised {
  PauseRecord pause;           // it is in the same pause, elsewhere
  std::uint64_t version = 1;   // of its journal
  Position first_changed = 0;  // row; what it had computed before it is kept
};
struct Revise {
  GenerationId id = kNoGeneration;
  std::unique_ptr<Revision> revision;
  Reply<Revised> reply;  // kStale if it is no longer where the anchor was taken
};
struct GetStatus {
  GenerationId id = kNoGeneration;
  Reply<Status> reply;
};

struct Command {
  Instant asked;
  std::variant<Submit, Pause, Resume, Cancel, Inspect, TakeAnchor, Revise, GetStatus> what;
};

}  // namespace fermata
