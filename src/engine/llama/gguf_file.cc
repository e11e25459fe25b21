#include "engine/llama/gguf_file.h"

#include <bit>
#include <cstdio>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "base/regular_file.h"
#include "ggml.h"
#include "gguf.h"
#include "llama.h"

namespace fermata {
namespace {

constexpr std::uint64_t kKeysMax = 1 << 16;
constexpr std::uint64_t kTensorsMax = 1 << 17;
constexpr std::uint64_t kKeyBytesMax = 1 << 16;
constexpr std::uint64_t kNameBytesMax = GGML_MAX_NAME - 1;
constexpr std::uint64_t kSplitsMax = 1024;
constexpr std::uint32_t kAlignmentMax = 1 << 16;

// Why a file is refused. Thrown inside this file only, turned into a Result at its border.
struct Malformed {
  std::string why;
};

// Reads forward, never beyond the end of the file.
class Reader {
 public:
  explicit Reader(RegularFile file)
      : file_(fdopen(file.descriptor.release(), "rb"), &std::fclose), n_bytes_(file.n_bytes) {
    if (!file_) throw Malformed{"reading cannot begin"};
  }

  std::uint64_t n_bytes() const { return n_bytes_; }
  std::uint64_t at() const { return at_; }

  void read(void* to, std::uint64_t n, const char* what) {
    if (n > n_bytes_ - at_) throw Malformed{std::string("the file ends inside ") + what};
    if (n != 0 && std::fread(to, 1, n, file_.get()) != n) throw Malformed{std::string("reading failed at ") + what};
    at_ += n;
  }
  template <class Number>
  Number number(const char* what) {
    Number value;
    read(&value, sizeof value, what);
    return value;
  }
  std::string string(std::uint64_t n_max, const char* what) {
    const auto n = number<std::uint64_t>(what);
    if (n > n_max || n > n_bytes_ - at_) throw Malformed{std::string(what) + " has an impossible length"};
    std::string value(n, '\0');
    read(value.data(), n, what);
    return value;
  }

 private:
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  std::uint64_t n_bytes_;
  std::uint64_t at_ = 0;
};

std::uint64_t scalar_bytes(std::uint32_t type) {
  switch (type) {
    case GGUF_TYPE_UINT8:
    case GGUF_TYPE_INT8:
    case GGUF_TYPE_BOOL: return 1;
    case GGUF_TYPE_UINT16:
    case GGUF_TYPE_INT16: return 2;
    case GGUF_TYPE_UINT32:
    case GGUF_TYPE_INT32:
    case GGUF_TYPE_FLOAT32: return 4;
    case GGUF_TYPE_UINT64:
    case GGUF_TYPE_INT64:
    case GGUF_TYPE_FLOAT64: return 8;
    default: return 0;
  }
}

void append_scalar(Reader& reader, std::uint32_t type, std::string& encoded) {
  if (type == GGUF_TYPE_STRING) {
    const std::string value = reader.string(reader.n_bytes(), "a metadata string");
    const std::uint64_t n = value.size();
    encoded.append(reinterpret_cast<const char*>(&n), sizeof n).append(value);
    return;
  }
  const std::uint64_t n = scalar_bytes(type);
  if (n == 0) throw Malformed{"a metadata value has an unknown type"};
  char bytes[8];
  reader.read(bytes, n, "a metadata value");
  if (type == GGUF_TYPE_BOOL && bytes[0] != 0 && bytes[0] != 1) throw Malformed{"a metadata flag is neither 0 nor 1"};
  encoded.append(bytes, n);
}

std::string read_value(Reader& reader) {
  const auto type = reader.number<std::uint32_t>("a metadata type");
  std::string encoded(reinterpret_cast<const char*>(&type), sizeof type);
  if (type != GGUF_TYPE_ARRAY) {
    append_scalar(reader, type, encoded);
    return encoded;
  }
  const auto element = reader.number<std::uint32_t>("an array type");
  const auto n = reader.number<std::uint64_t>("an array length");
  const std::uint64_t least = element == GGUF_TYPE_STRING ? 8 : scalar_bytes(element);
  if (least == 0) throw Malformed{"a metadata array has an unknown type"};
  if (n > (reader.n_bytes() - reader.at()) / least) throw Malformed{"a metadata array is longer than the file"};
  encoded.append(reinterpret_cast<const char*>(&element), sizeof element);
  encoded.append(reinterpret_cast<const char*>(&n), sizeof n);
  for (std::uint64_t i = 0; i < n; ++i) append_scalar(reader, element, encoded);
  return encoded;
}

GgufTensor read_tensor(Reader& reader) {
  GgufTensor tensor;
  tensor.name = reader.string(kNameBytesMax, "a tensor name");
  const auto n_dims = reader.number<std::uint32_t>("a tensor shape");
  if (n_dims < 1 || n_dims > 4) throw Malformed{"tensor '" + tensor.name + "' has an impossible number of dimensions"};
  std::uint64_t n_values = 1;
  for (std::uint32_t i = 0; i < n_dims; ++i) {
    tensor.dims[i] = reader.number<std::uint64_t>("a tensor shape");
    if (tensor.dims[i] == 0 || tensor.dims[i] > (1ull << 40) / n_values)
      throw Malformed{"tensor '" + tensor.name + "' has an impossible shape"};
    n_values *= tensor.dims[i];
  }
  tensor.type = reader.number<std::int32_t>("a tensor type");
  if (tensor.type < 0 || tensor.type >= GGML_TYPE_COUNT || ggml_type_size(ggml_type(tensor.type)) == 0)
    throw Malformed{"tensor '" + tensor.name + "' has a type that this build does not know"};
  const auto block = static_cast<std::uint64_t>(ggml_blck_size(ggml_type(tensor.type)));
  if (tensor.dims[0] % block != 0) throw Malformed{"tensor '" + tensor.name + "' has rows of incomplete blocks"};
  tensor.n_bytes = n_values / block * ggml_type_size(ggml_type(tensor.type));
  tensor.begin = reader.number<std::uint64_t>("a tensor offset");  // from data_begin, until it is known
  return tensor;
}

// The value of an encoded scalar of exactly this type.
template <class Number>
std::optional<Number> decode(std::string_view encoded, std::uint32_t wanted) {
  std::uint32_t type = 0;
  if (encoded.size() != sizeof type + sizeof(Number)) return std::nullopt;
  std::memcpy(&type, encoded.data(), sizeof type);
  if (type != wanted) return std::nullopt;
  Number value;
  std::memcpy(&value, encoded.data() + sizeof type, sizeof value);
  return value;
}

std::string split_path(const std::string& path, std::uint64_t number, std::uint64_t count) {
  std::vector<char> prefix(path.size() + 1);
  std::vector<char> whole(path.size() + 64);
  if (llama_split_prefix(prefix.data(), prefix.size(), path.c_str(), 0, static_cast<std::int32_t>(count)) == 0)
    return {};
  llama_split_path(whole.data(), whole.size(), prefix.data(), static_cast<std::int32_t>(number),
                   static_cast<std::int32_t>(count));
  return whole.data();
}

}  // namespace

Result<GgufFile> GgufFile::read(const std::string& path) {
  static_assert(std::endian::native == std::endian::little, "GGUF is read as it stands");
  GgufFile file;
  file.path_ = path;
  Result<RegularFile> opened = open_regular_file(path);
  if (!opened)
    return Error{Code::kModel, "the model file cannot be read: " + opened.error().message, opened.error().detail,
                 false};
  try {
    Reader reader(*std::move(opened));
    file.n_bytes_ = reader.n_bytes();
    char magic[4];
    reader.read(magic, sizeof magic, "its first bytes");
    if (std::memcmp(magic, "GGUF", 4) != 0) throw Malformed{"it does not begin with GGUF"};
    const auto version = reader.number<std::uint32_t>("its version");
    if (version != 2 && version != 3)
      throw Malformed{"its GGUF version is " + std::to_string(version) + ", not 2 or 3"};
    const auto n_tensors = reader.number<std::uint64_t>("its number of tensors");
    const auto n_keys = reader.number<std::uint64_t>("its number of keys");
    if (n_tensors > kTensorsMax) throw Malformed{"it claims " + std::to_string(n_tensors) + " tensors"};
    if (n_keys > kKeysMax) throw Malformed{"it claims " + std::to_string(n_keys) + " metadata keys"};
    for (std::uint64_t i = 0; i < n_keys; ++i) {
      std::string key = reader.string(kKeyBytesMax, "a metadata key");
      if (key.empty() || key.find('\0') != std::string::npos) throw Malformed{"a metadata key is malformed"};
      std::string value = read_value(reader);
      if (!file.values_.emplace(key, std::move(value)).second) throw Malformed{"it holds the key '" + key + "' twice"};
    }
    std::set<std::string_view> names;
    file.tensors_.reserve(n_tensors);
    for (std::uint64_t i = 0; i < n_tensors; ++i) {
      file.tensors_.push_back(read_tensor(reader));
      if (!names.insert(file.tensors_.back().name).second)
        throw Malformed{"it holds the tensor '" + file.tensors_.back().name + "' twice"};
    }
    std::uint64_t alignment = GGUF_DEFAULT_ALIGNMENT;
    if (file.values_.contains("general.alignment")) {
      const auto given = decode<std::uint32_t>(file.values_.at("general.alignment"), GGUF_TYPE_UINT32);
      if (!given || *given < 8 || *given > kAlignmentMax || !std::has_single_bit(*given))
        throw Malformed{"its alignment is impossible"};
      alignment = *given;
    }
    const std::uint64_t data_begin = (reader.at() + alignment - 1) / alignment * alignment;
    for (GgufTensor& tensor : file.tensors_) {
      if (data_begin > file.n_bytes_ || tensor.begin > file.n_bytes_ - data_begin ||
          tensor.n_bytes > file.n_bytes_ - data_begin - tensor.begin)
        throw Malformed{"it ends before tensor '" + tensor.name + "' does: it was cut off"};
      if (tensor.begin % alignment != 0) throw Malformed{"tensor '" + tensor.name + "' is not aligned"};
      tensor.begin += data_begin;
    }
  } catch (const Malformed& malformed) {
    return Error{Code::kModel, "the model file is not a whole GGUF file: " + malformed.why, path, false};
  } catch (const std::exception& error) {
    return Error{Code::kModel, "the model file cannot be read", path + ": " + error.what(), false};
  }
  return file;
}

std::optional<std::uint64_t> GgufFile::integer(std::string_view key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return std::nullopt;
  const std::string_view encoded = found->second;
  if (auto value = decode<std::uint32_t>(encoded, GGUF_TYPE_UINT32)) return *value;
  if (auto value = decode<std::uint64_t>(encoded, GGUF_TYPE_UINT64)) return *value;
  if (auto value = decode<std::uint16_t>(encoded, GGUF_TYPE_UINT16)) return *value;
  if (auto value = decode<std::uint8_t>(encoded, GGUF_TYPE_UINT8)) return *value;
  if (auto value = decode<std::uint8_t>(encoded, GGUF_TYPE_BOOL)) return *value;
  if (auto value = decode<std::int32_t>(encoded, GGUF_TYPE_INT32); value && *value >= 0)
    return static_cast<std::uint64_t>(*value);
  return std::nullopt;
}

std::vector<std::uint64_t> GgufFile::integers(std::string_view key) const {
  if (const auto single = integer(key)) return {*single};
  constexpr std::size_t kHead = 2 * sizeof(std::uint32_t) + sizeof(std::uint64_t);  // type, element type, length
  const auto found = values_.find(key);
  if (found == values_.end() || found->second.size() < kHead) return {};
  std::array<std::uint32_t, 2> types{};
  std::memcpy(types.data(), found->second.data(), sizeof types);
  if (types[0] != GGUF_TYPE_ARRAY || (types[1] != GGUF_TYPE_UINT32 && types[1] != GGUF_TYPE_INT32)) return {};
  std::vector<std::uint64_t> numbers;
  for (std::size_t at = kHead; at + sizeof(std::uint32_t) <= found->second.size(); at += sizeof(std::uint32_t)) {
    std::uint32_t number = 0;
    std::memcpy(&number, found->second.data() + at, sizeof number);
    numbers.push_back(number);
  }
  return numbers;
}

std::optional<double> GgufFile::number(std::string_view key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return std::nullopt;
  if (auto value = decode<float>(found->second, GGUF_TYPE_FLOAT32)) return static_cast<double>(*value);
  return decode<double>(found->second, GGUF_TYPE_FLOAT64);
}

std::optional<std::string_view> GgufFile::text(std::string_view key) const {
  const auto found = values_.find(key);
  const std::size_t head = sizeof(std::uint32_t) + sizeof(std::uint64_t);
  if (found == values_.end() || found->second.size() < head) return std::nullopt;
  std::uint32_t type = 0;
  std::memcpy(&type, found->second.data(), sizeof type);
  if (type != GGUF_TYPE_STRING) return std::nullopt;
  return std::string_view(found->second).substr(head);
}

Result<std::vector<GgufFile>> read_model_files(const std::string& path) {
  auto first = GgufFile::read(path);
  if (!first) return first.error();
  const std::uint64_t count = first->integer("split.count").value_or(1);
  if (count > kSplitsMax) return Error{Code::kModel, "the model claims too many parts", std::to_string(count), false};
  std::vector<GgufFile> files;
  files.push_back(*std::move(first));
  for (std::uint64_t i = 1; i < count; ++i) {
    const std::string part = split_path(path, i, count);
    if (part.empty())
      return Error{Code::kModel, "the model was split; give the path of its first part (-00001-of-…)", path, false};
    auto file = GgufFile::read(part);
    if (!file) return file.error();
    files.push_back(*std::move(file));
  }
  return files;
}

}  // namespace fermata
