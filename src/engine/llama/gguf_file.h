#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fermata {

// What a GGUF file says about itself, read and bounded by us before libllama sees the file: libllama ends the process
// on some malformed files, and this product must not.
//
//   | "GGUF" version n_tensors n_kv | key type value … | name n_dims dims type offset … | padding | tensor data |
//                                                                                       ^ data_begin, aligned
struct GgufTensor {
  std::string name;
  std::array<std::uint64_t, 4> dims{1, 1, 1, 1};
  std::int32_t type = 0;      // a ggml_type
  std::uint64_t begin = 0;    // in the file
  std::uint64_t n_bytes = 0;  // begin + n_bytes <= size of the file
};

class GgufFile {
 public:
  // kModel, saying what is wrong, for anything but a whole and well-formed GGUF file.
  static Result<GgufFile> read(const std::string& path);

  const std::string& path() const { return path_; }
  std::uint64_t n_bytes() const { return n_bytes_; }
  std::span<const GgufTensor> tensors() const { return tensors_; }

  // Metadata. Absent, or of another type: nothing.
  std::optional<std::uint64_t> integer(std::string_view key) const;
  std::vector<std::uint64_t> integers(std::string_view key) const;  // a list, or one as a list of one
  std::optional<double> number(std::string_view key) const;
  std::optional<std::string_view> text(std::string_view key) const;
  // The encoded value of every key: type and value bytes as they stand in the file. What a fingerprint hashes.
  const std::map<std::string, std::string, std::less<>>& encoded() const { return values_; }

 private:
  std::string path_;
  std::uint64_t n_bytes_ = 0;
  std::vector<GgufTensor> tensors_;
  std::map<std::string, std::string, std::less<>> values_;
};

// The further checks on metadata that keep libllama from dividing by zero or allocating without bound; kUnsupported for
// kinds of models whose pool cannot be mirrored (recurrent, hybrid, sliding window, encoder, diffusion).
Result<void> check_model_kind(const GgufFile& file);

// The files of a model that was split when it was written ("-00001-of-00003.gguf"): all of them, checked. A model in
// one file gives just that.
Result<std::vector<GgufFile>> read_model_files(const std::string& path);

}  // namespace fermata
