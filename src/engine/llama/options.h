#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/limits.h"

namespace fermata {

// Types a pool may keep keys and values in. Which pairs are exact and fast: docs/decisions/005-row-invariance.md.
enum class KvType { kF16, kBf16, kQ8_0 };

enum class AttentionChoice {
  kOurs,  // engine/attention where this CPU has the instructions, else ggml's
  kGgml,
};

enum class SelfTest {
  kCached,  // the verdict for this fingerprint if there is one, else test and remember
  kAlways,
  kNever,  // exactness is reported false: "not tested"
};

struct LlamaOptions {
  std::string model_path;
  std::int32_t n_cells = 4096;                        // of the pool; libllama rounds up to a multiple of 256
  std::int32_t n_rows_max = limits::kPrefillRowsMax;  // of one step
  std::int32_t n_sequences = limits::kSequencesMax;   // ids of the pool, the one kept for moving pages included
  KvType k_type = KvType::kF16;
  KvType v_type = KvType::kF16;
  std::int32_t n_threads = 0;  // 0: chosen from affinity mask, CPU quota and topology (threads.h)
  bool exact = true;           // switch off what breaks row-invariance, where it can be switched off
  AttentionChoice attention = AttentionChoice::kOurs;
  SelfTest self_test = SelfTest::kCached;
  bool use_mmap = true;
  // Verifies after every step that attention saw exactly the cells the ledger says. For tests: reads every mask.
  bool audit_masks = false;
};

// Asked while loading, with 0 .. 1; false gives up.
using LoadProgress = std::function<bool(float)>;

}  // namespace fermata
