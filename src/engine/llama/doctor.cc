#include "engine/llama/doctor.h"

#include <array>
#include <fstream>

#include "engine/attention/attention.h"
#include "engine/llama/memory.h"
#include "ggml-cpu.h"
#include "llama.h"

namespace fermata {
namespace {

struct CpuInfo {
  std::string name;
  std::string flags;
};

CpuInfo read_cpu_info() {
  CpuInfo info;
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line) && (info.name.empty() || info.flags.empty())) {
    const auto colon = line.find(": ");
    if (colon == std::string::npos) continue;
    if (line.starts_with("model name") || line.starts_with("Model")) info.name = line.substr(colon + 2);
    if (line.starts_with("flags") || line.starts_with("Features")) info.flags = ' ' + line.substr(colon + 2) + ' ';
  }
  return info;
}

std::vector<std::string> kernel_features() {
  struct Feature {
    const char* name;
    int (*has)();
  };
  constexpr std::array features = {
      Feature{"AVX", ggml_cpu_has_avx},
      Feature{"AVX2", ggml_cpu_has_avx2},
      Feature{"FMA", ggml_cpu_has_fma},
      Feature{"F16C", ggml_cpu_has_f16c},
      Feature{"AVX-VNNI", ggml_cpu_has_avx_vnni},
      Feature{"AVX512", ggml_cpu_has_avx512},
      Feature{"AVX512-VBMI", ggml_cpu_has_avx512_vbmi},
      Feature{"AVX512-VNNI", ggml_cpu_has_avx512_vnni},
      Feature{"AVX512-BF16", ggml_cpu_has_avx512_bf16},
      Feature{"AMX-INT8", ggml_cpu_has_amx_int8},
      Feature{"NEON", ggml_cpu_has_neon},
      Feature{"DOTPROD", ggml_cpu_has_dotprod},
      Feature{"I8MM", ggml_cpu_has_matmul_int8},
      Feature{"SVE", ggml_cpu_has_sve},
  };
  std::vector<std::string> names;
  for (const Feature& feature : features)
    if (feature.has() != 0) names.emplace_back(feature.name);
  return names;
}

}  // namespace

DoctorReport examine_machine() {
  DoctorReport report;
  DoctorReport::Machine& machine = report.machine;
  const CpuInfo cpu = read_cpu_info();
  const CpuBudget budget = read_cpu_budget();
  machine.cpu_name = cpu.name.empty() ? "unknown" : cpu.name;
  machine.n_allowed = budget.n_allowed;
  machine.n_cores = budget.n_cores;
  machine.quota = budget.quota;
  machine.features = kernel_features();
  machine.attention = attention::instruction_set();
  machine.amx_present = cpu.flags.find(" amx_tile ") != std::string::npos;
  const MemoryBudget memory = read_memory_budget();
  machine.memory_bytes = memory.n_bytes;
  machine.memory_available_bytes = memory.n_bytes_available;
  report.model.threads_why = choose_threads(budget, 0).why;
  report.model.n_threads = choose_threads(budget, 0).n_threads;
  return report;
}

DoctorReport examine(const LlamaEngine& engine) {
  DoctorReport report = examine_machine();
  DoctorReport::Model& model = report.model;
  model.loaded = true;
  model.name = engine.info().model_name;
  model.path = engine.options().model_path;
  std::array<char, 256> description{};
  llama_model_desc(engine.model(), description.data(), description.size());
  model.description = description.data();
  model.n_parameters = llama_model_n_params(engine.model());
  model.weights_bytes = llama_model_size(engine.model());
  model.n_ctx_train = engine.info().n_ctx_train;
  model.fingerprint = engine.fingerprint().hex;
  model.fields = engine.fingerprint().fields;
  model.exactness = engine.info().exactness;
  model.tiled_products = engine.switches().tiled_products;
  model.repacked_weights = engine.switches().repacked_weights;
  model.reordered_blocks = engine.switches().reordered_blocks;
  model.k_type = to_string(engine.options().k_type);
  model.v_type = to_string(engine.options().v_type);
  model.attention = engine.attention_in_use();
  model.n_cells = engine.info().n_cells;
  model.pool_bytes = engine.pool_bytes();
  model.n_rows_max = engine.info().n_rows_max;
  model.n_sequences = engine.options().n_sequences;
  model.n_threads = engine.options().n_threads;
  model.threads_why = engine.threads().why;
  return report;
}

}  // namespace fermata
