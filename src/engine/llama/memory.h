#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "engine/llama/gguf_file.h"
#include "engine/llama/options.h"

namespace fermata {

struct MemoryBudget {
  std::uint64_t n_bytes = 0;            // of the machine
  std::uint64_t n_bytes_available = 0;  // to this process, swap included: what the kernel estimates, at most what its
                                        // control group and its address space (ulimit -v) may have
};
MemoryBudget read_memory_budget();

// Keys and values of all layers for options.n_cells, as libllama rounds them. Nothing where the metadata do not say it.
std::optional<std::uint64_t> pool_bytes_wanted(const GgufFile& file, const LlamaOptions& options);

// What a context of libllama asks for beside its pool, generously: the rows of logits it keeps and computes, the mask
// of a step, what lies between its layers.
std::uint64_t step_bytes_wanted(const GgufFile& file, const LlamaOptions& options, std::uint64_t n_vocab);

// Whether so much could be had now. Takes and touches nothing.
bool has_room_for(std::uint64_t n_bytes);

// kTooLarge, with the figures and what to lower. `wanted`: of the pool, if it is known; `for_steps`: beside it.
Error too_little_memory_for_pool(std::optional<std::uint64_t> wanted, std::uint64_t for_steps,
                                 const LlamaOptions& options);

// Refuses a pool that cannot be had, before anything is allocated: the kernel would grant it and end the process when
// its pages are touched.
Result<void> check_pool_fits(const GgufFile& file, const LlamaOptions& options, const MemoryBudget& budget);

// Whether an error text of libllama or ggml speaks of memory that could not be had.
bool tells_of_memory(const std::string& text);

}  // namespace fermata
