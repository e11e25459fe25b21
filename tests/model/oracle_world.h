#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "plain_loop.h"
#include "runtime/engine_loop.h"
#include "watched_engine.h"

namespace fermata::oracle {

struct OracleOptions {
  std::uint64_t seed = 1;
  std::int32_t n_runs = 100;    // generations to compare
  std::int32_t n_live_max = 6;  // at a time
  std::int32_t n_prompt_max = 700;
  std::int32_t n_tokens_max = 60;
  bool with_grammars = true;
  bool with_changes = true;  // edits and branches
};

// What must have happened for the comparison to mean something.
struct OracleCounts {
  std::uint64_t n_compared = 0;
  std::uint64_t n_rows = 0;  // logits rows compared
  std::uint64_t n_pauses = 0;
  std::uint64_t n_pauses_in_step = 0;  // asked for in the middle of a step
  std::uint64_t n_pauses_with_logits = 0;
  std::uint64_t n_pauses_in_prefill = 0;
  std::uint64_t n_cancelled = 0;
  std::uint64_t n_inspections = 0;
  std::uint64_t n_revised = 0;
  std::uint64_t n_revised_stale = 0;  // prepared, and too late
  std::uint64_t n_revisions_refused = 0;
  std::uint64_t n_edited_prompts = 0;
  std::uint64_t n_notes = 0;  // put into a completion
  std::uint64_t n_branches = 0;
  std::uint64_t n_other_sampling = 0;
  std::uint64_t n_past_512 = 0;  // generations that went beyond 512 tokens
  std::uint64_t n_with_grammar = 0;
  std::uint64_t n_stopped_by_string = 0;
};

// Random generations on a real engine — they come and go, are paused, looked at, edited, branched, resumed, cancelled
// and disturbed in the middle of steps — each compared with the plain loop on its journal when it has ended: token ids
// and the hash of every logits row since the last edit.
class OracleWorld {
 public:
  OracleWorld(Engine& engine, PlainLoop& reference, OracleOptions options);
  // The first difference, as a sentence; empty if there is none.
  std::string run();

  // Gives all cells back, for the next world on the same engine.
  void release_pool();

  const OracleCounts& counts() const { return counts_; }
  const LoopStats& stats() const { return loop_.stats(); }
  std::uint64_t n_holes_filled() const { return engine_.n_holes_filled(); }

 private:
  struct Run {
    Request request;
    std::vector<JournalRow> given;  // behind the prompt, by the last edit
    std::shared_ptr<EventRing> events;
    std::vector<TokenId> sent;
    Position n_generated = 0;
    bool paused = false;
    bool finished = false;
    FinishEvent end;
  };

  // A change under way: the anchor is asked for, then the revision that was made of it is.
  struct Change {
    GenerationId id = kNoGeneration;
    bool is_branch = false;
    Reply<Anchor> anchor;
    std::optional<Reply<Revised>> revised;
    Request request;  // of the revision
    std::vector<JournalRow> given;
  };

  Request random_request();
  SamplingParams random_sampling();
  void submit();
  void disturb();
  void act(GenerationId id);
  void pause(GenerationId id, bool in_step);
  void begin_change(GenerationId id);
  void go_on_with_changes();
  bool go_on_with(Change& change);  // true: it is over
  std::vector<Splice> random_splices(const Journal& journal);
  void branch(Revision revision, const Change& change);
  void drain();
  std::string compare(GenerationId id, const Run& run);
  GenerationId any_live();
  bool chance(double p) { return std::uniform_real_distribution<>(0, 1)(random_) < p; }
  std::int64_t number(std::int64_t lowest, std::int64_t highest) {
    return std::uniform_int_distribution<std::int64_t>(lowest, highest)(random_);
  }

  const OracleOptions options_;
  std::mt19937_64 random_;
  RowRecords records_;
  std::unique_ptr<SamplerFactory> samplers_;
  const SamplerFactory& plain_samplers_;
  WatchedEngine engine_;
  PlainLoop& reference_;
  SystemClock clock_;
  EngineLoop loop_;
  OracleCounts counts_;
  std::vector<std::vector<TokenId>> openings_;  // prompts begin with one of these, so that prefixes are shared
  std::map<GenerationId, Run> live_;
  std::vector<Change> changes_;
  std::uint64_t next_id_ = 1;
  std::string difference_;
};

}  // namespace fermata::oracle
