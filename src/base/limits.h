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
inline constexpr std::int32_t kDecodeRowsMax = 64;         // rows of one decode call; each reserves a row of logits
inline constexpr std::int32_t kPrefillRowsMax = 128;       // rows of one prefill chunk
inline constexpr std::int32_t kPrefillRowsShared = 64;     // the same of the only prompt beside running streams
inline constexpr std::int32_t kPrefillRowsUnaborted = 32;  // the same in a step that cannot be aborted

inline constexpr std::size_t kConfigBytesMax = 16 * 1024;  // toml++ takes stack for each dot of a key
inline constexpr std::size_t kChatTemplateBytesMax = 1024 * 1024;
inline constexpr std::size_t kPromptBytesMax = 16 * 1024 * 1024;  // read from standard input

// --- chat templates: work of one rendering, in what it takes from the heap
inline constexpr std::size_t kTemplateAllocations =
    5'000'000;  // and at loading; 5 million take about a third of a second
inline constexpr std::size_t kTemplateAllocationsPerMessage = 300'000;  // more; some look at all messages for each
inline constexpr std::size_t kTemplateAllocationsMax = 200'000'000;
inline constexpr std::size_t kTemplateBytesLive = 256 << 20;               // at once
inline constexpr std::size_t kTemplateBytesCopied = std::size_t{2} << 30;  // all together
inline constexpr std::size_t kTemplateBytesPerMessage = 16 << 20;          // more
inline constexpr std::size_t kTemplateBytesCopiedMax = std::size_t{16} << 30;
inline constexpr std::size_t kTemplateCopies = 64;  // of a dialogue's bytes, at once, more than these

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

// --- api: what a request body may hold
inline constexpr std::size_t kJsonBytesMax = 16 * 1024 * 1024;
inline constexpr std::size_t kJsonDepthMax = 64;        // objects and arrays within each other
inline constexpr std::size_t kJsonValuesMax = 1 << 21;  // of one text: each costs many times its bytes in memory
static_assert(kJsonValuesMax > kTokensMax, "a prompt of token ids must fit");
inline constexpr std::size_t kMessagesMax = 1 << 14;  // of one dialogue
inline constexpr std::size_t kNameBytesMax = 256;     // model, session, client_id, idempotency_key, a tag
inline constexpr std::size_t kTagsMax = 16;
inline constexpr std::size_t kMetadataBytesMax = 16 * 1024;  // as JSON text
inline constexpr std::int32_t kCompletionLogprobsMax = 5;    // `logprobs` of /v1/completions
inline constexpr std::int64_t kTimeoutMsMax = 7LL * 24 * 3600 * 1000;
inline constexpr std::int32_t kPriorityMax = 1000;  // and the least is -kPriorityMax

// --- http: what comes in over a socket (src/api/http)
inline constexpr std::size_t kHttpHeaderBytesMax = 32 * 1024;          // request line and headers of one request
inline constexpr std::size_t kHttpHeadersMax = 100;                    // their number
inline constexpr std::size_t kHttpQueryParametersMax = 64;             // of one request
inline constexpr std::size_t kHttpBodyBytesMax = 16 * 1024 * 1024;     // of one request
inline constexpr std::size_t kHttpBodiesBytesMax = 256 * 1024 * 1024;  // being read, of all requests together
inline constexpr std::size_t kHttpDrainBytesMax = 64 * 1024;  // body of a refused request that is read to keep the line
inline constexpr std::size_t kHttpLingerBytesMax = kHttpBodyBytesMax;  // read over after a connection's last answer
inline constexpr std::size_t kHttpReadAheadBytesMax = 64 * 1024;       // of later requests, taken while one is answered
inline constexpr std::size_t kHttpConnectionsMax = 4096;
inline constexpr std::size_t kHttpRefusedMax =
    64;  // beyond these many more, which are told 503, a connection is dropped
inline constexpr std::size_t kHttpRequestsPerConnectionMax = 10'000;
inline constexpr std::int64_t kHttpIdleMs = 75'000;        // a connection without a request
inline constexpr std::int64_t kHttpHeaderReadMs = 15'000;  // from the first byte of a request to its last header
inline constexpr std::int64_t kHttpBodyReadMs = 300'000;   // from there to the last byte of its body
inline constexpr std::int64_t kHttpWriteStallMs = 30'000;  // a reader that takes nothing for so long is gone
inline constexpr std::int64_t kHttpLingerMs = 2'000;       // from our last byte to the client's close
inline constexpr std::int64_t kHttpSweepMs = 250;          // how often these are looked at
inline constexpr std::size_t kHttpWritesInARowMax = 64;    // then other connections have their turn
static_assert(kHttpBodyBytesMax <= kHttpBodiesBytesMax, "one request must fit");
static_assert(kHttpRefusedMax < kHttpConnectionsMax, "refusing must cost less than serving");
inline constexpr std::size_t kWebSocketMessageBytesMax = 1024 * 1024;  // from a client
inline constexpr std::size_t kWebSocketInboxMax = 64;                  // messages of a client that nobody has taken
inline constexpr std::size_t kWebSocketQueueBytesMax = 1024 * 1024;    // to a client that reads slowly
inline constexpr std::size_t kWebSocketQueueMax = 4096;                // the same in messages
inline constexpr std::int64_t kWebSocketPingLeastMs = 1000;            // two pings unanswered: closed
inline constexpr std::size_t kApiKeysMax = 1024;
inline constexpr std::size_t kApiKeyFileBytesMax = 1024 * 1024;
inline constexpr std::size_t kApiKeyBytesMax = 128;     // of a presented key
inline constexpr std::int64_t kApiKeyFileLookMs = 500;  // between two looks at the file; read if they agree
inline constexpr std::int64_t kKeyFolderLockMs = 2000;  // that new-key waits for another that writes there
inline constexpr std::int64_t kKeyFolderLookMs = 20;    // between two looks
inline constexpr std::size_t kRequestIdBytesMax = 128;  // of a client's x-request-id that is taken over

// --- the log of the server (src/server)
inline constexpr std::size_t kLogPathBytesMax = 256;  // of a request's path
inline constexpr std::size_t kWriterLinesMax = 4096;  // of the log or standard output that nobody has taken; then lost
inline constexpr std::int64_t kWriterCloseMs = 1000;  // what a reader that does not read may hold up the end
inline constexpr std::int64_t kWriterLookMs = 200;    // how often a writer that cannot write looks whether it ends
static_assert(kWriterLookMs < kWriterCloseMs, "it must see that it ends");

// --- generations as clients know them (src/api)
inline constexpr std::int64_t kFinishedKeptMs = 3'600'000;                // an ended one can be looked at for so long
inline constexpr std::size_t kFinishedKept = 2000;                        // and so many of them
inline constexpr std::size_t kFinishedBytesMax = std::size_t{256} << 20;  // all recordings together
inline constexpr std::size_t kForgottenIdsMax = 20'000;                   // known as gone; as many pauses too
inline constexpr std::int64_t kIdempotencyKeptMs = 86'400'000;            // a key, after its generation was forgotten
inline constexpr std::size_t kIdempotencyKeysKept = 20'000;               // of these
inline constexpr std::int64_t kTombstoneMs = 60'000;                      // a cancel that came before its request
inline constexpr std::size_t kTombstonesMax = 4096;
inline constexpr std::size_t kTombstonesPerTenantMax = 256;
inline constexpr std::size_t kTokenizeBytesMax = 1024 * 1024;  // of one text: the answer is many times as long
inline constexpr std::size_t kDetokenizeBytesMax = 4 << 20;  // of the text of some tokens, which the answer holds twice
inline constexpr std::size_t kLongJobBytes = 64 * 1024;      // a text that does not get the last free thread
inline constexpr std::size_t kMessageWorkBytes = 1024;       // what a message costs beside its text, as text
inline constexpr std::size_t kGrammarWork = 16;              // a byte of a grammar or schema, in bytes of text
inline constexpr std::size_t kJobPassedMax = 16;             // then a longer job is before all shorter ones
inline constexpr std::size_t kControlBodyBytesMax = 64 * 1024;  // of pause, cancel, resume: read by the io thread
inline constexpr std::size_t kEditBodyBytesMax = 1024 * 1024;   // of edit and fork
inline constexpr std::size_t kEditsMax = 256;                   // of one call
inline constexpr std::size_t kBranchesMax = 64;                 // of one call
inline constexpr std::size_t kBranchesOfOneMax = 1024;          // of one generation, that are kept
inline constexpr std::size_t kAlivePerKeyMax = 2048;
inline constexpr std::size_t kPausedPerKeyMax = 1024;
inline constexpr std::int64_t kPauseAgeMaxMs = 86'400'000;
inline constexpr std::int64_t kSessionLookMs = 1000;
inline constexpr std::int64_t kStartAgainMs = 20;  // after the engine had no room for one whose turn it was
inline constexpr std::int64_t kDeskSweepMs = 1000;
inline constexpr std::int64_t kDrainLookMs = 20;
inline constexpr std::int64_t kEngineAnswerMs = 30'000;
inline constexpr std::size_t kReaderLagMax = 256;       // entries of its log that a stream may be behind
inline constexpr std::int64_t kTokensPageMax = 10'000;  // journal rows of one answer
inline constexpr std::int64_t kTokensPageDefault = 1000;
inline constexpr std::int64_t kListPageMax = 100;  // generations of one answer
inline constexpr std::int64_t kListPageDefault = 20;
inline constexpr std::int64_t kInspectTopDefault = 10;  // of kTopLogprobsMax
inline constexpr std::size_t kFeedQueueMax = 4096;      // events of all generations that a follower has not taken
inline constexpr std::size_t kFeedBytesMax = 1 << 20;   // of their data
inline constexpr std::size_t kFollowersPerKeyMax = 32;  // of all events
inline constexpr std::size_t kFollowersMax = 256;
inline constexpr std::int64_t kEngineSilentMs = 30'000;  // longer than any step: the engine is stuck
inline constexpr std::int64_t kInterruptReachMs = 1000;  // a pause or cancel that takes longer: the engine is stuck
inline constexpr std::size_t kStreamPieceBytesMax = 64 * 1024;  // of one write, when a reader has to catch up
inline constexpr std::int64_t kKeepAliveMs = 15'000;            // of silence on a stream; a flag sets another
inline constexpr std::int64_t kPauseWaitMs = 60'000;  // who asked for no stream waits through a pause; likewise
inline constexpr std::size_t kWaitingMax = 768;  // begun and not admitted, of all: refused before it replaces anything
static_assert(kAlivePerKeyMax < kGenerationsMax, "one key must not keep out all others");
static_assert(kWaitingMax < kWorkCallsMax, "most of those that come at once fit into the mailbox");

inline constexpr std::size_t kStackBytesLeast = std::size_t{8} << 20;  // of a thread; grammars and JSON nest

// --- a client of a server (src/client)
inline constexpr std::size_t kSseEventBytesMax = std::size_t{16} << 20;  // one event
inline constexpr std::size_t kAnswerBytesMax = std::size_t{256} << 20;   // one answer that is no stream
inline constexpr std::int64_t kConnectMs = 10'000;
inline constexpr std::int64_t kTcpKeepAliveS = 30;
inline constexpr std::size_t kListPagesMax = 10'000;  // of 100 rows
inline constexpr std::int64_t kHealthLookMs = 2'000;  // whether a server is there that nobody named

// --- a talk in a terminal (src/chat)
inline constexpr std::int64_t kEscapeMs = 50;               // a lone ESC; then it is a key, not the beginning of one
inline constexpr std::int64_t kKeySequenceMs = 1000;        // for the rest of an escape sequence that has begun
inline constexpr std::int64_t kPasteMs = 10'000;            // for the end of a paste; then what came is all
inline constexpr std::size_t kKeySequenceBytesMax = 64;     // of one escape sequence
inline constexpr std::size_t kInputBytesMax = 1024 * 1024;  // of one question, and of one paste
inline constexpr std::int64_t kSecondInterruptMs = 1000;    // two Ctrl-C within this end the talk
inline constexpr std::size_t kHistoryEntriesMax = 1000;
inline constexpr std::size_t kHistoryBytesMax = 1024 * 1024;  // of the file

}  // namespace fermata::limits
