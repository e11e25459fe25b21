#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/llama/gguf_file.h"
#include "engine/llama/options.h"

struct llama_context;
struct llama_model;

namespace fermata {

// Kernel choices of ggml that decide bits, apart from what was compiled in. All cost speed when off.
struct KernelSwitches {
  bool tiled_products = true;    // GGML_CPU_TILED_MM: K-quants by tiles from 8 rows on; read once per process
  bool repacked_weights = true;  // use_extra_bufts: weights laid out anew at load, with kernels of their own
  bool reordered_blocks = true;  // BlockProducts::reordered
  bool operator==(const KernelSwitches&) const = default;
};

struct ModelDeleter {
  void operator()(llama_model* model) const;
};
struct ContextDeleter {
  void operator()(llama_context* context) const;
};
using ModelPtr = std::unique_ptr<llama_model, ModelDeleter>;
using ContextPtr = std::unique_ptr<llama_context, ContextDeleter>;

// What a process asks of GGML_CPU_TILED_MM first is what it gets: ggml reads the variable once. Returns what holds.
bool hold_tiled_products(bool wanted);

// Loads the weights. Neither a malformed file nor a failed assertion inside libllama ends the process.
Result<ModelPtr> load_model(const std::vector<GgufFile>& files, const KernelSwitches& switches, bool use_mmap,
                            const LoadProgress& progress);

// kModel: `what` could not be done for want of memory.
Error too_little_memory(const std::string& what, const std::string& detail);

// Runs a part of libllama that may assert (GGML_ASSERT) on foreign input; an assertion or exception becomes an Error.
// What libllama held at that moment is leaked. On one thread only: not for computing.
Result<void> contain(const char* what, const std::function<void()>& part);

}  // namespace fermata
