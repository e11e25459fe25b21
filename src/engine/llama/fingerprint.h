#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/llama/gguf_file.h"
#include "engine/llama/loaded_model.h"
#include "engine/llama/options.h"

namespace fermata {

// What decides the bits of a state, field by field. Two engines with equal fingerprints may exchange states. The name
// and place of the model file, its license and chat template do not take part.
struct Fingerprint {
  std::string hex;                                          // BLAKE2b-256 over all fields
  std::vector<std::pair<std::string, std::string>> fields;  // name, value (a text or a digest), in a fixed order

  // The first field in which they differ, for the refusal of a foreign state; empty if equal.
  std::string first_difference(const Fingerprint& other) const;
};

struct FingerprintInput {
  const std::vector<GgufFile>* files = nullptr;
  KernelSwitches switches;
  KvType k_type{};
  KvType v_type{};
  std::string attention;  // implementation, version and instruction set
};

// Reads all tensor data once; their digest is remembered by path, size and time of change (file_cache.h).
Result<Fingerprint> make_fingerprint(const FingerprintInput& input);

std::string_view to_string(KvType type);

}  // namespace fermata
