#include "engine/llama/memory.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string_view>

#include "engine/llama/fingerprint.h"

namespace fermata {
namespace {

constexpr std::uint64_t kCellsMultiple = 256;  // libllama rounds up to it

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

// The limit of this process's control group and of every group above it: the smallest counts. "max" is none.
std::uint64_t group_limit() {
  std::uint64_t least = UINT64_MAX;
  const auto note = [&](const std::string& path) {
    std::ifstream file(path);
    std::uint64_t limit = 0;
    if (file >> limit) least = std::min(least, limit);
  };
  std::ifstream groups("/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    if (!line.starts_with("0::")) continue;
    for (std::string path = line.substr(3);;) {
      note("/sys/fs/cgroup" + path + "/memory.max");
      const auto slash = path.rfind('/');
      if (slash == std::string::npos || path.size() <= 1) break;
      path.resize(slash);
    }
  }
  note("/sys/fs/cgroup/memory/memory.limit_in_bytes");
  return least;
}

// Bytes of n values in a row of the pool.
std::uint64_t row_bytes(KvType type, std::uint64_t n) {
  constexpr std::uint64_t kBlock = 32;
  constexpr std::uint64_t kBlockBytes = 34;  // 32 values and their scale
  return type == KvType::kQ8_0 ? (n + kBlock - 1) / kBlock * kBlockBytes : 2 * n;
}

std::string mib(std::uint64_t n_bytes) { return std::to_string((n_bytes + (1 << 20) - 1) >> 20) + " MiB"; }

}  // namespace

MemoryBudget read_memory_budget() {
  const std::uint64_t available = memory_line("MemAvailable:") + memory_line("SwapFree:");
  rlimit address_space{};
  const bool is_limited = getrlimit(RLIMIT_AS, &address_space) == 0 && address_space.rlim_cur != RLIM_INFINITY;
  const std::uint64_t limit = is_limited ? address_space.rlim_cur : UINT64_MAX;
  return {memory_line("MemTotal:"), std::min({available, group_limit(), limit})};
}

std::optional<std::uint64_t> pool_bytes_wanted(const GgufFile& file, const LlamaOptions& options) {
  const std::string arch(file.text("general.architecture").value_or(""));
  const auto layers = file.integer(arch + ".block_count");
  const auto width = file.integer(arch + ".embedding_length");
  const std::vector<std::uint64_t> heads = file.integers(arch + ".attention.head_count");
  std::vector<std::uint64_t> heads_kv = file.integers(arch + ".attention.head_count_kv");
  if (heads_kv.empty()) heads_kv = heads;
  // Latent keys and values (MLA) have rows of their own kind.
  if (!layers || !width || heads.empty() || heads[0] == 0 || file.integer(arch + ".attention.kv_lora_rank"))
    return std::nullopt;
  const std::uint64_t k_values = file.integer(arch + ".attention.key_length").value_or(*width / heads[0]);
  const std::uint64_t v_values = file.integer(arch + ".attention.value_length").value_or(*width / heads[0]);
  std::uint64_t of_one_cell = 0;
  for (std::uint64_t layer = 0; layer < *layers; ++layer) {
    const std::uint64_t n = heads_kv[std::min<std::uint64_t>(layer, heads_kv.size() - 1)];
    of_one_cell += row_bytes(options.k_type, n * k_values) + row_bytes(options.v_type, n * v_values);
  }
  const auto n_cells = static_cast<std::uint64_t>(options.n_cells);
  return (n_cells + kCellsMultiple - 1) / kCellsMultiple * kCellsMultiple * of_one_cell;
}

std::uint64_t step_bytes_wanted(const GgufFile& file, const LlamaOptions& options, std::uint64_t n_vocab) {
  constexpr std::uint64_t kMaskBytes = 4 + 2;  // of a row and cell: f32, and f16 for attention
  constexpr std::uint64_t kVectors = 64;       // of the width of the model, for a row
  constexpr std::uint64_t kOther = std::uint64_t{64} << 20;
  const auto n_rows = static_cast<std::uint64_t>(options.n_rows_max);
  const auto n_outputs = static_cast<std::uint64_t>(std::max(options.n_sequences, limits::kDecodeRowsMax));
  const std::string arch(file.text("general.architecture").value_or(""));
  const std::uint64_t width = file.integer(arch + ".embedding_length").value_or(0);
  return 4 * n_vocab * (n_outputs + n_rows) + kMaskBytes * n_rows * static_cast<std::uint64_t>(options.n_cells) +
         4 * kVectors * width * n_rows + kOther;
}

bool has_room_for(std::uint64_t n_bytes) {
  void* const room = mmap(nullptr, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return room != MAP_FAILED && munmap(room, n_bytes) == 0;
}

Error too_little_memory_for_pool(std::optional<std::uint64_t> wanted, std::uint64_t for_steps,
                                 const LlamaOptions& options) {
  const bool has_smaller_type = options.k_type != KvType::kQ8_0 || options.v_type != KvType::kQ8_0;
  return Error{Code::kTooLarge,
               "there is too little memory for a KV pool of " + std::to_string(options.n_cells) + " cells" +
                   (wanted ? " (" + mib(*wanted) + ")" : "") + "; ask for fewer (-c)" +
                   (has_smaller_type ? " or a smaller type (--kv q8_0)" : ""),
               std::string(to_string(options.k_type)) + " keys, " + std::string(to_string(options.v_type)) + " values" +
                   (for_steps ? "; steps need " + mib(for_steps) : "") + "; " +
                   mib(read_memory_budget().n_bytes_available) + " may be used in all",
               false};
}

Result<void> check_pool_fits(const GgufFile& file, const LlamaOptions& options, const MemoryBudget& budget) {
  const auto wanted = pool_bytes_wanted(file, options);
  if (wanted && budget.n_bytes_available > 0 && *wanted > budget.n_bytes_available)
    return too_little_memory_for_pool(wanted, 0, options);
  return {};
}

bool tells_of_memory(const std::string& text) {
  constexpr std::array<std::string_view, 5> words = {"failed to allocate", "unable to allocate", "insufficient memory",
                                                     "Cannot allocate memory", "bad_alloc"};
  return std::ranges::any_of(words, [&](std::string_view word) { return text.find(word) != std::string::npos; });
}

}  // namespace fermata
