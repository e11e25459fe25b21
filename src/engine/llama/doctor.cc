#include "engine/llama/doctor.h"

#include <array>
#include <fstream>
#include <sstream>

#include "engine/attention/attention.h"
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

std::uint64_t memory_line(std::string_view name) {
  std::ifstream file("/proc/meminfo");
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with(name)) continue;
    std::istringstream words(line.substr(name.size()));
    std::uint64_t kib = 0;
    words >> kib;
    return kib * 1024;
  }
  return 0;
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

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string mib(std::uint64_t bytes) { return std::to_string((bytes + (1 << 19)) >> 20) + " MiB"; }
const char* on_off(bool on) { return on ? "on" : "off"; }

// Writes nested objects with indent; keys are ours, values are escaped.
class Json {
 public:
  void open(std::string_view key = {}) {
    item(key);
    out_ += '{';
    first_ = true;
    depth_ += 1;
  }
  void close() {
    depth_ -= 1;
    line();
    out_ += '}';
    first_ = false;
  }
  void put(std::string_view key, std::string_view value) {
    item(key);
    quote(value);
  }
  void put(std::string_view key, const char* value) { put(key, std::string_view(value)); }
  void put(std::string_view key, bool value) {
    item(key);
    out_ += value ? "true" : "false";
  }
  template <class Number>
  requires std::is_arithmetic_v<Number>
  void put(std::string_view key, Number value) {
    item(key);
    std::ostringstream text;
    text.imbue(std::locale::classic());
    text << value;
    out_ += text.str();
  }
  void put(std::string_view key, const std::vector<std::string>& values) {
    item(key);
    out_ += '[';
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out_ += ", ";
      quote(values[i]);
    }
    out_ += ']';
  }
  std::string take() { return std::move(out_) + "\n"; }

 private:
  void line() { out_ += '\n' + std::string(2 * depth_, ' '); }
  void item(std::string_view key) {
    if (depth_ == 0) return;
    if (!first_) out_ += ',';
    first_ = false;
    line();
    quote(key);
    out_ += ": ";
  }
  void quote(std::string_view text) {
    out_ += '"';
    for (const char c : text) {
      const auto code = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') {
        out_ += '\\';
        out_ += c;
      } else if (code < 0x20) {
        constexpr std::string_view digits = "0123456789abcdef";
        out_ += "\\u00";
        out_ += digits[code >> 4];
        out_ += digits[code & 15];
      } else {
        out_ += c;
      }
    }
    out_ += '"';
  }

  std::string out_;
  std::size_t depth_ = 0;
  bool first_ = true;
};

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
  machine.memory_bytes = memory_line("MemTotal:");
  machine.memory_available_bytes = memory_line("MemAvailable:");
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
  model.blocks_of_floats = engine.switches().blocks_of_floats;
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

std::string DoctorReport::to_text() const {
  std::ostringstream out;
  out << "CPU          " << machine.cpu_name << "; " << machine.n_cores << " cores, " << machine.n_allowed
      << " logical CPUs allowed";
  if (machine.quota > 0) out << ", quota " << machine.quota;
  out << "\nkernels      " << joined(machine.features) << "\nAMX          "
      << (machine.amx_present ? "present, not used (the build leaves it out)" : "not present") << "\nattention    "
      << (machine.attention == "none" ? "ggml's (this CPU lacks what ours needs)" : "ours, " + machine.attention)
      << "\nmemory       " << mib(machine.memory_available_bytes) << " available of " << mib(machine.memory_bytes)
      << "\nthreads      " << model.threads_why << '\n';
  if (!model.loaded) return out.str();
  out << "model        " << model.name << " (" << model.description << ", " << mib(model.weights_bytes)
      << ")\n             " << model.path << "\nfingerprint  " << model.fingerprint << '\n';
  for (const auto& [name, value] : model.fields) out << "             " << name << " = " << value << '\n';
  out << "exact        " << (model.exactness.alone ? "alone: yes" : "alone: no")
      << (model.exactness.with_neighbours ? ", with neighbours: yes" : ", with neighbours: no") << "\n             "
      << model.exactness.why << "\nswitches     tiled products " << on_off(model.tiled_products)
      << ", repacked weights " << on_off(model.repacked_weights) << ", blocks of floats "
      << on_off(model.blocks_of_floats) << "\nKV pool      keys " << model.k_type << ", values " << model.v_type << ", "
      << model.n_cells << " cells, " << mib(model.pool_bytes) << ", " << model.n_sequences << " sequences, "
      << model.n_rows_max << " rows a step\nin use       attention " << model.attention << '\n';
  return out.str();
}

std::string DoctorReport::to_json() const {
  Json json;
  json.open();
  json.open("machine");
  json.put("cpu", machine.cpu_name);
  json.put("cores", machine.n_cores);
  json.put("logical_cpus_allowed", machine.n_allowed);
  json.put("cpu_quota", machine.quota);
  json.put("kernels", machine.features);
  json.put("attention_instructions", machine.attention);
  json.put("amx_present", machine.amx_present);
  json.put("amx_used", false);
  json.put("memory_bytes", machine.memory_bytes);
  json.put("memory_available_bytes", machine.memory_available_bytes);
  json.close();
  json.open("threads");
  json.put("count", model.n_threads);
  json.put("why", model.threads_why);
  json.close();
  if (model.loaded) {
    json.open("model");
    json.put("name", model.name);
    json.put("path", model.path);
    json.put("description", model.description);
    json.put("parameters", model.n_parameters);
    json.put("weights_bytes", model.weights_bytes);
    json.put("context_trained", model.n_ctx_train);
    json.put("fingerprint", model.fingerprint);
    json.open("fingerprint_fields");
    for (const auto& [name, value] : model.fields) json.put(name, value);
    json.close();
    json.close();
    json.open("exact");
    json.put("alone", model.exactness.alone);
    json.put("with_neighbours", model.exactness.with_neighbours);
    json.put("why", model.exactness.why);
    json.put("tiled_products", model.tiled_products);
    json.put("repacked_weights", model.repacked_weights);
    json.put("blocks_of_floats", model.blocks_of_floats);
    json.close();
    json.open("pool");
    json.put("keys", model.k_type);
    json.put("values", model.v_type);
    json.put("attention", model.attention);
    json.put("cells", model.n_cells);
    json.put("bytes", model.pool_bytes);
    json.put("sequences", model.n_sequences);
    json.put("rows_per_step", model.n_rows_max);
    json.close();
  }
  json.close();
  return json.take();
}

}  // namespace fermata
