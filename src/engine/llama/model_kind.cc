#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "engine/llama/gguf_file.h"

namespace fermata {
namespace {

constexpr std::uint64_t kLayersMax = 512;     // libllama's LLAMA_MAX_LAYERS
constexpr std::uint64_t kWidthMax = 1 << 20;  // embedding, feed-forward
constexpr std::uint64_t kHeadsMax = 1 << 14;
constexpr std::uint64_t kContextMax = 1 << 28;

Error malformed(std::string_view key) {
  return Error{Code::kModel, "the model's metadata is impossible or missing", std::string(key), false};
}

// A key that may be absent or an array (one value per layer); a single value must lie in [1, most].
bool plausible(const GgufFile& file, const std::string& key, std::uint64_t most, bool required) {
  const auto value = file.integer(key);
  if (!value) return !required || file.encoded().contains(key);
  return *value >= 1 && *value <= most;
}

Result<void> check_shape(const GgufFile& file, const std::string& arch) {
  struct Bound {
    const char* key;
    std::uint64_t most;
    bool required;
  };
  constexpr std::array bounds = {
      Bound{".block_count", kLayersMax, true},
      Bound{".embedding_length", kWidthMax, true},
      Bound{".context_length", kContextMax, true},
      Bound{".attention.head_count", kHeadsMax, true},
      Bound{".attention.head_count_kv", kHeadsMax, false},
      Bound{".attention.key_length", kWidthMax, false},
      Bound{".attention.value_length", kWidthMax, false},
      Bound{".feed_forward_length", kWidthMax * 8, false},
  };
  for (const Bound& bound : bounds)
    if (!plausible(file, arch + bound.key, bound.most, bound.required)) return malformed(arch + bound.key);
  const auto heads = file.integer(arch + ".attention.head_count");
  const auto heads_kv = file.integer(arch + ".attention.head_count_kv");
  if (heads && heads_kv && *heads % *heads_kv != 0) return malformed(arch + ".attention.head_count_kv");
  return {};
}

bool is_one_of(std::string_view arch, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, arch) != names.end();
}

}  // namespace

Result<void> check_model_kind(const GgufFile& file) {
  const auto arch = file.text("general.architecture");
  if (!arch || arch->empty() || arch->size() > 64) return malformed("general.architecture");
  if (file.tensors().empty()) return Error{Code::kModel, "the model file holds no tensors", file.path(), false};
  if (const auto type = file.text("general.type"); type && *type != "model")
    return Error{Code::kModel, "the file is not a model but another kind of GGUF", std::string(*type), false};
  if (is_one_of(*arch,
                {"bert", "nomic-bert", "nomic-bert-moe", "neo-bert", "jina-bert-v2", "jina-bert-v3", "modern-bert",
                 "eurobert", "t5", "t5encoder", "clip", "wavtokenizer-dec", "gemma-embedding", "llama-embed"}))
    return Error{Code::kUnsupported,
                 "the model has an encoder or only makes embeddings; it cannot generate step by step",
                 std::string(*arch), false};
  if (is_one_of(*arch, {"mamba", "mamba2", "rwkv6", "rwkv7", "rwkv6qwen2", "arwkv7"}) ||
      file.encoded().contains(std::string(*arch) + ".ssm.state_size"))
    return Error{Code::kUnsupported,
                 "the model is recurrent: its state has no cells, so it cannot be cut, shared or mirrored",
                 std::string(*arch), false};
  return check_shape(file, std::string(*arch));
}

}  // namespace fermata
