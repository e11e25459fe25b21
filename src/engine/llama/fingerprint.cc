#include "engine/llama/fingerprint.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "base/regular_file.h"
#include "engine/llama/block_products.h"
#include "engine/llama/checksum.h"
#include "engine/llama/file_cache.h"
#include "ggml-cpu.h"
#include "llama.h"

#ifndef FERMATA_LLAMA_ID
#error "the build says which llama.cpp this is"
#endif

namespace fermata {
namespace {

constexpr std::size_t kReadBytes = 1 << 22;

std::string digest_of_keys(const GgufFile& file, auto&& matters) {
  Blake2b hash;
  for (const auto& [key, value] : file.encoded()) {
    if (!matters(std::string_view(key))) continue;
    hash.add(key);
    hash.add(value);
  }
  return hash.hex();
}

// What identifies the bytes of a file well enough to remember their digest.
std::string identity_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return {};
  std::error_code ignored;
  return std::filesystem::absolute(path, ignored).string() + "|" + std::to_string(status.st_ino) + "|" +
         std::to_string(status.st_size) + "|" + std::to_string(status.st_mtim.tv_sec) + "." +
         std::to_string(status.st_mtim.tv_nsec) + "|" + std::to_string(status.st_ctim.tv_sec) + "." +
         std::to_string(status.st_ctim.tv_nsec);
}

// Names, types, shapes and data of all tensors, in the order of their names' appearance.
Result<std::string> digest_weights(const GgufFile& file) {
  const FileCache cache("weights");
  const std::string identity = identity_of(file.path());
  if (auto known = cache.find(identity); known && known->size() == 64) return *known;
  const Result<RegularFile> opened = open_regular_file(file.path());
  if (!opened) return opened.error();
  Blake2b hash;
  std::vector<std::byte> buffer(kReadBytes);
  for (const GgufTensor& tensor : file.tensors()) {
    hash.add(tensor.name);
    hash.add_raw(std::as_bytes(std::span(&tensor.type, 1)));
    hash.add_raw(std::as_bytes(std::span(tensor.dims)));
    for (std::uint64_t done = 0; done < tensor.n_bytes;) {
      const std::size_t wanted = std::min<std::uint64_t>(buffer.size(), tensor.n_bytes - done);
      const ssize_t n =
          pread(opened->descriptor.number(), buffer.data(), wanted, static_cast<off_t>(tensor.begin + done));
      if (n <= 0) return Error{Code::kIo, "the model file cannot be read", file.path() + ", " + tensor.name, true};
      hash.add_raw(std::span(buffer).first(static_cast<std::size_t>(n)));
      done += static_cast<std::uint64_t>(n);
    }
  }
  std::string hex = hash.hex();
  cache.put(identity, hex);
  return hex;
}

// The kernels that ggml was compiled with: "AVX2 = 1 | FMA = 1 | LLAMAFILE = 1 | …".
std::string instructions() {
  std::string text = llama_print_system_info();
  const auto cut = text.find("CPU : ");
  return cut == std::string::npos ? text : text.substr(cut + 6);
}

}  // namespace

std::string_view to_string(KvType type) {
  switch (type) {
    case KvType::kF16: return "f16";
    case KvType::kBf16: return "bf16";
    case KvType::kQ8_0: return "q8_0";
  }
  return "unknown";
}

std::string Fingerprint::first_difference(const Fingerprint& other) const {
  for (std::size_t i = 0; i < fields.size() && i < other.fields.size(); ++i)
    if (fields[i] != other.fields[i]) return fields[i].first;
  return fields.size() == other.fields.size() ? std::string() : "number of fields";
}

Result<Fingerprint> make_fingerprint(const FingerprintInput& input) {
  const GgufFile& file = input.files->front();
  const std::string arch(file.text("general.architecture").value_or(""));
  const auto is_rope = [&](std::string_view key) { return key.starts_with(arch + ".rope."); };
  Fingerprint made;
  auto add = [&](const char* name, std::string value) { made.fields.emplace_back(name, std::move(value)); };
  add("model.architecture", arch);
  add("model.shape",
      digest_of_keys(file, [&](std::string_view key) { return key.starts_with(arch + ".") && !is_rope(key); }));
  add("model.rope", digest_of_keys(file, is_rope));
  add("model.tokenizer", digest_of_keys(file, [](std::string_view key) {
        return key.starts_with("tokenizer.") && !key.starts_with("tokenizer.chat_template");
      }));
  std::string weights;
  for (const GgufFile& part : *input.files) {
    auto digest = digest_weights(part);
    if (!digest) return digest.error();
    weights += (weights.empty() ? "" : "+") + *digest;
  }
  add("model.weights", std::move(weights));
  add("kv.keys", std::string(to_string(input.k_type)));
  add("kv.values", std::string(to_string(input.v_type)));
  add("attention", input.attention);
  add("engine.sources", FERMATA_LLAMA_ID);
  add("engine.build", FERMATA_LLAMA_FLAGS);
  add("cpu.instructions", instructions());
  add("kernels.tiled_products", input.switches.tiled_products ? "on" : "off");
  add("kernels.repacked_weights", input.switches.repacked_weights ? "on" : "off");
  add("kernels.blocks_from_rows", std::to_string(rows_for_blocks()));
  add("kernels.reordered_blocks", input.switches.reordered_blocks ? "on" : "off");
  Blake2b hash;
  for (const auto& [name, value] : made.fields) {
    hash.add(name);
    hash.add(value);
  }
  made.hex = hash.hex();
  return made;
}

}  // namespace fermata
