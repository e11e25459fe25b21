#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/llama/engine.h"

namespace fermata {

// What was found and chosen, for people (to_text) and programs (to_json). The facts of the machine need no model.
struct DoctorReport {
  struct Machine {
    std::string cpu_name;
    std::int32_t n_allowed = 0;  // logical CPUs of the affinity mask
    std::int32_t n_cores = 0;
    double quota = 0;                   // CPUs' worth of time; 0: no limit
    std::vector<std::string> features;  // instruction sets that the kernels were compiled for and this CPU has
    std::string attention;              // instruction set of our attention; "none" if it cannot run here
    bool amx_present = false;           // the CPU lists it; the kernels are built without it
    std::uint64_t memory_bytes = 0;
    std::uint64_t memory_available_bytes = 0;
  } machine;
  struct Model {
    bool loaded = false;
    std::string name;
    std::string path;
    std::string description;  // libllama's: architecture, size, quantisation
    std::uint64_t n_parameters = 0;
    std::uint64_t weights_bytes = 0;
    std::int32_t n_ctx_train = 0;
    std::string fingerprint;
    std::vector<std::pair<std::string, std::string>> fields;
    Exactness exactness;
    bool tiled_products = true;
    bool repacked_weights = true;
    bool reordered_blocks = true;
    std::string k_type;
    std::string v_type;
    std::string attention;
    std::int32_t n_cells = 0;
    std::uint64_t pool_bytes = 0;
    std::int32_t n_rows_max = 0;
    std::int32_t n_sequences = 0;
    std::int32_t n_threads = 0;
    std::string threads_why;
  } model;

  std::string to_text() const;
  std::string to_json() const;  // one object, two spaces of indent
};

DoctorReport examine_machine();
DoctorReport examine(const LlamaEngine& engine);

}  // namespace fermata
