#include "engine/llama/page_codec.h"

#include <array>
#include <cstring>

#include "base/check.h"
#include "base/limits.h"
#include "engine/llama/checksum.h"

namespace fermata {
namespace {

constexpr std::uint32_t kMagic = 0x47504D46;  // "FMPG"
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kCellMetaBytes = 12;  // position, number of owners (1), owner
constexpr std::uint32_t kLayersMax = 4096;

struct Header {
  std::uint32_t magic = kMagic;
  std::uint32_t version = kVersion;
  std::array<char, 16> fingerprint{};
  std::int32_t begin = 0;
  std::int32_t end = 0;
  std::uint64_t body_bytes = 0;
  std::uint64_t checksum = 0;
  std::uint64_t reserved = 0;  // must be 0
};
static_assert(sizeof(Header) == kPageHeaderBytes);

class BlobReader {
 public:
  explicit BlobReader(std::span<const std::byte> blob) : blob_(blob) {}
  template <class Number>
  bool read(Number& value) {
    if (blob_.size() < sizeof value) return false;
    std::memcpy(&value, blob_.data(), sizeof value);
    blob_ = blob_.subspan(sizeof value);
    return true;
  }
  template <class Number>
  bool expect(Number wanted) {
    Number value;
    return read(value) && value == wanted;
  }
  bool take(std::size_t n, std::span<const std::byte>& bytes) {
    if (blob_.size() < n) return false;
    bytes = blob_.first(n);
    blob_ = blob_.subspan(n);
    return true;
  }
  bool at_end() const { return blob_.empty(); }

 private:
  std::span<const std::byte> blob_;
};

class BlobWriter {
 public:
  explicit BlobWriter(std::size_t n_bytes) { blob_.reserve(n_bytes); }
  template <class Number>
  void write(Number value) {
    bytes(std::as_bytes(std::span(&value, 1)));
  }
  void bytes(std::span<const std::byte> more) { blob_.insert(blob_.end(), more.begin(), more.end()); }
  std::vector<std::byte> take() { return std::move(blob_); }

 private:
  std::vector<std::byte> blob_;
};

// The first 16 bytes of a fingerprint, as digits of its text: enough to tell models apart, short enough for a header.
std::array<char, 16> short_fingerprint(std::string_view hex) {
  std::array<char, 16> digits{};
  std::memcpy(digits.data(), hex.data(), std::min(hex.size(), digits.size()));
  return digits;
}

// Over the header with its checksum set to 0, then the body.
std::uint64_t checksum_of(const Header& header, std::span<const std::byte> body) {
  Header unsigned_header = header;
  unsigned_header.checksum = 0;
  return xxh64(body, xxh64(std::as_bytes(std::span(&unsigned_header, 1)), kMagic));
}

Error lie(const char* field) {
  return Error{Code::kInvalidArgument, "the page was damaged or is not of this model; nothing was loaded", field,
               false};
}

}  // namespace

Result<KvLayout> KvLayout::learn(std::span<const std::byte> blob) {
  const Error unknown{Code::kUnsupported, "the pool of this model cannot be moved in pages",
                      "libllama's state has a shape that is not known", false};
  KvLayout layout;
  BlobReader reader(blob);
  std::int32_t seq = 0;
  std::int32_t position = 0;
  if (!reader.read(layout.magic_) || !reader.read(seq) || !reader.expect<std::uint32_t>(1) ||  // streams
      !reader.expect<std::uint32_t>(1) ||                                                      // cells
      !reader.read(position) || !reader.expect<std::uint32_t>(1) || !reader.expect(seq) ||
      !reader.expect<std::uint32_t>(0) ||  // values not transposed
      !reader.read(layout.n_layers_) || layout.n_layers_ == 0 || layout.n_layers_ > kLayersMax)
    return unknown;
  for (std::uint32_t i = 0; i < 2 * layout.n_layers_; ++i) {
    Part part;
    std::span<const std::byte> row;
    if (!reader.read(part.type) || !reader.read(part.row_bytes) || !reader.take(part.row_bytes, row)) return unknown;
    layout.row_bytes_ += part.row_bytes;
    layout.parts_.push_back(part);
  }
  if (!reader.at_end()) return unknown;
  return layout;
}

std::size_t KvLayout::blob_bytes(std::size_t n_cells) const {
  const std::size_t fixed = 4 + 4 + 4 + 4 + 4 + 4 + parts_.size() * (sizeof(std::int32_t) + sizeof(std::uint64_t));
  return fixed + n_cells * (kCellMetaBytes + row_bytes_);
}

bool KvLayout::blob_to_body(std::span<const std::byte> blob, Position begin, Position end,
                            std::vector<std::byte>& out) const {
  const auto n = static_cast<std::size_t>(end - begin);
  BlobReader reader(blob);
  std::int32_t seq = 0;
  if (!reader.expect(magic_) || !reader.read(seq) || !reader.expect<std::uint32_t>(1) ||
      !reader.expect(static_cast<std::uint32_t>(n)))
    return false;
  std::vector<std::size_t> place_of(n);  // in the body, of the blob's i-th cell
  std::vector<bool> seen(n);
  bool in_order = true;
  for (std::size_t i = 0; i < n; ++i) {
    std::int32_t position = 0;
    if (!reader.read(position) || !reader.expect<std::uint32_t>(1) || !reader.expect(seq)) return false;
    if (position < begin || position >= end) return false;
    place_of[i] = static_cast<std::size_t>(position - begin);
    if (seen[place_of[i]]) return false;
    seen[place_of[i]] = true;
    in_order = in_order && place_of[i] == i;
  }
  if (!reader.expect<std::uint32_t>(0) || !reader.expect(n_layers_)) return false;
  std::size_t at = out.size();
  out.resize(at + body_bytes(n));
  for (const Part& part : parts_) {
    std::span<const std::byte> rows;
    if (!reader.expect(part.type) || !reader.expect(part.row_bytes) || !reader.take(n * part.row_bytes, rows))
      return false;
    if (in_order)
      std::memcpy(out.data() + at, rows.data(), rows.size());
    else
      for (std::size_t i = 0; i < n; ++i)
        std::memcpy(out.data() + at + place_of[i] * part.row_bytes, rows.data() + i * part.row_bytes, part.row_bytes);
    at += rows.size();
  }
  return reader.at_end();
}

std::vector<std::byte> KvLayout::body_to_blob(std::span<const std::byte> body, Position begin, Position end,
                                              SeqId seq) const {
  const auto n = static_cast<std::size_t>(end - begin);
  FERMATA_CHECK_EQ(body.size(), body_bytes(n));
  BlobWriter writer(blob_bytes(n));
  writer.write(magic_);
  writer.write(raw(seq));
  writer.write<std::uint32_t>(1);
  writer.write(static_cast<std::uint32_t>(n));
  for (Position position = begin; position < end; ++position) {
    writer.write(position);
    writer.write<std::uint32_t>(1);
    writer.write(raw(seq));
  }
  writer.write<std::uint32_t>(0);
  writer.write(n_layers_);
  for (const Part& part : parts_) {
    writer.write(part.type);
    writer.write(part.row_bytes);
    writer.bytes(body.first(n * part.row_bytes));
    body = body.subspan(n * part.row_bytes);
  }
  return writer.take();
}

void seal_page(Page& page, std::string_view fingerprint_hex) {
  FERMATA_CHECK_LE(kPageHeaderBytes, page.bytes.size());
  Header header;
  header.fingerprint = short_fingerprint(fingerprint_hex);
  header.begin = page.begin;
  header.end = page.end;
  header.body_bytes = page.bytes.size() - kPageHeaderBytes;
  header.checksum = checksum_of(header, std::span<const std::byte>(page.bytes).subspan(kPageHeaderBytes));
  std::memcpy(page.bytes.data(), &header, sizeof header);
}

Result<std::span<const std::byte>> open_page(const Page& page, std::string_view fingerprint_hex,
                                             const KvLayout& layout) {
  if (page.bytes.size() < kPageHeaderBytes) return lie("shorter than its header");
  Header header;
  std::memcpy(&header, page.bytes.data(), sizeof header);
  const auto body = std::span<const std::byte>(page.bytes).subspan(kPageHeaderBytes);
  if (header.magic != kMagic) return lie("magic");
  if (header.version != kVersion) return lie("version");
  if (header.reserved != 0) return lie("reserved");
  if (header.fingerprint != short_fingerprint(fingerprint_hex)) return lie("fingerprint");
  if (header.begin != page.begin || header.end != page.end) return lie("positions differ from the page's own");
  if (header.begin < 0 || header.end <= header.begin || header.end > limits::kTokensMax ||
      header.end - header.begin > limits::kPageTokens)
    return lie("positions");
  if (header.body_bytes != body.size() ||
      body.size() != layout.body_bytes(static_cast<std::size_t>(header.end - header.begin)))
    return lie("size");
  if (header.checksum != checksum_of(header, body)) return lie("checksum");
  return body;
}

}  // namespace fermata
