#pragma once

#include <cstddef>
#include <cstdint>

// Every limit of the product. A limit that is reached is named, with its figure, in the error that says so.
namespace fermata::limits {

// --- mailbox and rings
inline constexpr std::size_t kControlCallsMax = 4096;  // pause, cancel: waiting for the engine thread
inline constexpr std::size_t kWorkCallsMax = 1024;     // submit, resume, read: waiting for the engine thread
inline constexpr std::size_t kEventRingMax = 1024;     // events of one generation that its reader has not taken
inline constexpr std::size_t kUnsentEventsMax = 4096;  // kept for a full ring; beyond that its reader counts as gone
inline constexpr std::size_t kEventsPerTokenMax = 4;   // what one step may push for one generation
static_assert(kEventsPerTokenMax * 8 <= kEventRingMax, "a reader must be allowed to lag by a few tokens");

// --- generations
inline constexpr std::size_t kGenerationsMax = 4096;  // queued, running, paused, not yet forgotten
inline constexpr std::size_t kQueuedMax = 1024;       // of them waiting for admission
inline constexpr std::size_t kEndedKept = 4096;       // finished ones whose end can still be asked for
inline constexpr std::int32_t kTokensMax = 1 << 20;   // of one generation, prompt included
inline constexpr std::int64_t kUnheardEndMs =
    600'000;  // a finished one is kept so long for a reader that does not read
inline constexpr std::int64_t kNoProgressTimeoutMs = 30'000;  // of running time

// --- the pool (libllama's LLAMA_MAX_SEQ is 256; one id is kept for moving pages)
inline constexpr std::int32_t kSequencesMax = 256;
inline constexpr std::int32_t kPageTokens = 64;
inline constexpr std::size_t kPageBytesMax = std::size_t{1} << 30;  // of pages outside the pool, all together

// --- one step
inline constexpr std::int32_t kDecodeRowsMax = 64;      // rows of one decode call; each reserves a row of logits
inline constexpr std::int32_t kPrefillRowsMax = 128;    // rows of one prefill chunk when nobody waits for a token
inline constexpr std::int32_t kPrefillRowsShared = 32;  // the same beside running streams

inline constexpr std::size_t kPromptBytesMax = 16 * 1024 * 1024;  // read from standard input

// --- sampling and stop rules
inline constexpr std::size_t kStopStringsMax = 16;
inline constexpr std::size_t kStopStringBytesMax = 1024;
inline constexpr std::size_t kGrammarBytesMax = 256 * 1024;
inline constexpr std::size_t kSchemaDepthMax = 64;
inline constexpr std::size_t kSchemaPropertiesMax = 128;  // of one object: the conversion is cubic in them
inline constexpr std::size_t kGrammarNestingMax = 512;    // parentheses within parentheses
inline constexpr std::size_t kGrammarNodesMax = 1 << 18;  // after repetitions are written out
inline constexpr std::size_t kGrammarStatesMax = 1024;    // ways to read the text so far
inline constexpr std::size_t kGrammarDepthMax = 4096;     // rules within rules at one place of the text
inline constexpr std::size_t kDryBreakersMax = 16;
inline constexpr std::size_t kDryBreakerBytesMax = 40;
inline constexpr std::size_t kLogitBiasMax = 4096;
inline constexpr std::int32_t kTopLogprobsMax = 20;
inline constexpr std::int32_t kInspectRowsMax = 4096;    // journal rows of one inspection
inline constexpr std::int32_t kHistoryTokensMax = 8192;  // window of penalties and DRY

}  // namespace fermata::limits
