#include "engine/llama/prepare_model.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "engine/llama/gguf_file.h"
#include "engine/llama/llama_log.h"
#include "engine/llama/loaded_model.h"
#include "llama.h"

namespace fermata {
namespace {

llama_ftype file_type_of(WeightType type) {
  switch (type) {
    case WeightType::kQ4_0: return LLAMA_FTYPE_MOSTLY_Q4_0;
    case WeightType::kQ4_1: return LLAMA_FTYPE_MOSTLY_Q4_1;
    case WeightType::kQ8_0: return LLAMA_FTYPE_MOSTLY_Q8_0;
    case WeightType::kF16: return LLAMA_FTYPE_MOSTLY_F16;
    case WeightType::kQ6_K: return LLAMA_FTYPE_MOSTLY_Q6_K;
    case WeightType::kQ4_K_M: return LLAMA_FTYPE_MOSTLY_Q4_K_M;
  }
  return LLAMA_FTYPE_MOSTLY_Q4_0;
}

bool flush_to_disk(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool flushed = fsync(descriptor) == 0;
  return close(descriptor) == 0 && flushed;
}

// Removes the half-written file on every way out but the good one.
struct Scratch {
  std::string path;
  bool kept = false;
  ~Scratch() {
    std::error_code ignored;
    if (!kept) std::filesystem::remove(path, ignored);
  }
};

// A regular file that begins as a model does: what is left of one, and may be written anew.
bool is_cut_model(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(std::filesystem::symlink_status(path, ignored))) return false;
  char magic[4] = {};
  std::ifstream(path, std::ios::binary).read(magic, sizeof magic);
  return std::string_view(magic, sizeof magic) == "GGUF";
}

}  // namespace

std::string_view to_string(WeightType type) {
  switch (type) {
    case WeightType::kQ4_0: return "Q4_0";
    case WeightType::kQ4_1: return "Q4_1";
    case WeightType::kQ8_0: return "Q8_0";
    case WeightType::kF16: return "F16";
    case WeightType::kQ6_K: return "Q6_K";
    case WeightType::kQ4_K_M: return "Q4_K_M";
  }
  return "unknown";
}

Result<bool> prepare_model(const std::string& source, const std::string& target, WeightType type,
                           std::int32_t n_threads) {
  LlamaLog::capture();
  LlamaLog::clear();
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(target, error))) {
    if (GgufFile::read(target)) return false;
    if (!is_cut_model(target))
      return Error{Code::kInvalidArgument, "the target exists and is no model; choose another name or remove it",
                   target};
  }
  auto from = GgufFile::read(source);
  if (!from) return from.error();
  if (auto kind = check_model_kind(*from); !kind) return kind.error();
  Scratch scratch{target + ".part" + std::to_string(getpid())};
  llama_model_quantize_params params = llama_model_quantize_default_params();
  params.nthread = n_threads;
  params.ftype = file_type_of(type);
  params.allow_requantize = true;
  std::uint32_t rc = 1;
  auto ran = contain("it could not be turned into another weight type",
                     [&] { rc = llama_model_quantize(source.c_str(), scratch.path.c_str(), &params); });
  if (!ran) return ran.error();
  if (rc != 0)
    return Error{Code::kModel, "the model could not be turned into another weight type", LlamaLog::recent(), false};
  if (auto whole = GgufFile::read(scratch.path); !whole) return whole.error();
  if (!flush_to_disk(scratch.path))
    return Error{Code::kIo, "the prepared model could not be written to disk", target, true};
  std::filesystem::rename(scratch.path, target, error);
  if (error)
    return Error{Code::kIo, "the prepared model could not be put in place", target + ": " + error.message(), true};
  scratch.kept = true;
  return true;
}

}  // namespace fermata
