#include "engine/llama/prepare_model.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>

#include "base/regular_file.h"
#include "base/scratch_file.h"
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

// The type of a whole model's weights, as its own metadata have it.
std::optional<std::uint64_t> file_type(const GgufFile& file) { return file.integer("general.file_type"); }

std::string type_name(const std::optional<std::uint64_t>& type) {
  if (!type) return "weights of a type it does not name";
  for (const WeightType known : kWeightTypes)
    if (static_cast<std::uint64_t>(file_type_of(known)) == *type) return std::string(to_string(known)) + " weights";
  return "weights of llama.cpp's file type " + std::to_string(*type);
}

// Whether both are one model, whatever their weights' types: all tensors have the same names and shapes.
bool is_same_model(const GgufFile& a, const GgufFile& b) {
  if (a.text("general.architecture") != b.text("general.architecture")) return false;
  if (a.text("general.name") != b.text("general.name")) return false;
  std::map<std::string_view, std::array<std::uint64_t, 4>> shapes;
  for (const GgufTensor& tensor : a.tensors()) shapes.emplace(tensor.name, tensor.dims);
  return a.tensors().size() == b.tensors().size() && std::ranges::all_of(b.tensors(), [&](const GgufTensor& tensor) {
           const auto found = shapes.find(tensor.name);
           return found != shapes.end() && found->second == tensor.dims;
         });
}

// A regular file that begins as a model does: what is left of one, and may be written anew.
bool is_cut_model(const std::string& path) {
  const Result<RegularFile> file = open_regular_file(path);
  char magic[4] = {};
  return file && pread(file->descriptor.number(), magic, sizeof magic, 0) == ssize_t{sizeof magic} &&
         std::string_view(magic, sizeof magic) == "GGUF";
}

Error in_the_way(const std::string& what, const std::string& target) {
  return Error{Code::kInvalidArgument, "the target exists and " + what, target, false};
}

// Nothing stands in the way (false), or just what would be written (true).
Result<bool> is_there(const PrepareOptions& options, const GgufFile& from) {
  std::error_code ignored;
  if (!std::filesystem::exists(std::filesystem::symlink_status(options.target, ignored))) return false;
  if (std::filesystem::equivalent(options.source, options.target, ignored))
    return in_the_way("is the source itself; choose another name", options.target);
  const Result<GgufFile> there = GgufFile::read(options.target);
  if (!there && is_cut_model(options.target)) return false;
  if (!there) return in_the_way("is no model; choose another name or remove it", options.target);
  if (options.rewrite) return false;
  const std::string hint = "; choose another name, or --force to replace it";
  if (!is_same_model(from, *there)) return in_the_way("is another model than the source" + hint, options.target);
  if (file_type(*there) != static_cast<std::uint64_t>(file_type_of(options.type)))
    return in_the_way("has " + type_name(file_type(*there)) + ", not " + std::string(to_string(options.type)) + hint,
                      options.target);
  return true;
}

Result<void> quantize(const PrepareOptions& options, const std::string& path) {
  llama_model_quantize_params params = llama_model_quantize_default_params();
  params.nthread = options.n_threads;
  params.ftype = file_type_of(options.type);
  params.allow_requantize = true;
  std::uint32_t rc = 1;
  auto ran = contain("it could not be turned into another weight type",
                     [&] { rc = llama_model_quantize(options.source.c_str(), path.c_str(), &params); });
  if (!ran) return ran;
  if (rc != 0)
    return Error{Code::kModel, "the model could not be turned into another weight type", LlamaLog::recent(), false};
  if (auto whole = GgufFile::read(path); !whole) return whole.error();
  return {};
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

Result<Prepared> prepare_model(const PrepareOptions& options) {
  LlamaLog::capture();
  LlamaLog::clear();
  auto from = GgufFile::read(options.source);
  if (!from) return from.error();
  if (auto kind = check_model_kind(*from); !kind) return kind.error();
  auto there = is_there(options, *from);
  if (!there) return there.error();
  if (*there) return Prepared::kWasThere;
  auto scratch = ScratchFile::make(options.target);
  if (!scratch) return scratch.error();
  if (options.on_scratch) options.on_scratch(scratch->path());
  if (auto written = quantize(options, scratch->path()); !written) return written.error();
  if (auto flushed = scratch->flush(); !flushed) return flushed.error();
  if (auto placed = scratch->put_in_place(); !placed) return placed.error();
  return Prepared::kWritten;
}

}  // namespace fermata
