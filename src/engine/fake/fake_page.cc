#include "engine/fake/fake_page.h"

#include <cstring>
#include <string>
#include <utility>

#include "base/limits.h"
#include "engine/fake/fake_hash.h"

namespace fermata {

namespace {

constexpr std::uint32_t kMagic = 0x46504746;  // "FGPF"
constexpr std::uint32_t kVersion = 1;

struct Head {
  std::uint32_t magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint64_t weights = 0;
  std::int32_t begin = 0;
  std::int32_t n_cells = 0;
};
struct StoredCell {
  std::int32_t token = 0;
  std::int32_t position = 0;
  std::uint64_t digest = 0;
};
static_assert(sizeof(Head) == 24 && sizeof(StoredCell) == 16, "no padding in what is stored");

std::uint64_t checksum(std::span<const std::byte> bytes) {
  std::uint64_t state = mix(kMagic, bytes.size());
  for (const std::byte byte : bytes) state = mix(state, std::to_integer<std::uint64_t>(byte));
  return state;
}

template <class T>
void append(std::vector<std::byte>& bytes, const T& value) {
  const std::size_t at = bytes.size();
  bytes.resize(at + sizeof(T));
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

template <class T>
T read(std::span<const std::byte> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

Error refused(std::string what, std::string detail) {
  return {Code::kInvalidArgument, "the page is refused: " + std::move(what), std::move(detail), false};
}

}  // namespace

std::vector<std::byte> seal_fake_page(std::uint64_t weights, Position begin, std::span<const FakeCell> cells) {
  std::vector<std::byte> bytes;
  append(bytes, Head{kMagic, kVersion, weights, begin, static_cast<std::int32_t>(cells.size())});
  for (const FakeCell& cell : cells) append(bytes, StoredCell{raw(cell.token), cell.position, cell.digest});
  append(bytes, checksum(bytes));
  return bytes;
}

Result<std::vector<FakeCell>> open_fake_page(std::uint64_t weights, const Page& page) {
  const std::span<const std::byte> bytes = page.bytes;
  const std::int64_t n_cells = std::int64_t{page.end} - page.begin;
  if (page.begin < 0 || n_cells < 1 || n_cells > limits::kPageTokens)
    return refused("its range is empty or too long", std::to_string(page.begin) + " .. " + std::to_string(page.end));
  const std::size_t n_bytes = sizeof(Head) + static_cast<std::size_t>(n_cells) * sizeof(StoredCell) + 8;
  if (bytes.size() != n_bytes)
    return refused("its size is wrong", std::to_string(bytes.size()) + " bytes, not " + std::to_string(n_bytes));
  if (read<std::uint64_t>(bytes, n_bytes - 8) != checksum(bytes.first(n_bytes - 8)))
    return refused("its checksum is wrong", {});
  const Head head = read<Head>(bytes, 0);
  if (head.magic != kMagic || head.version != kVersion) return refused("it is of another format", {});
  if (head.weights != weights)
    return refused("it comes from other weights", std::to_string(head.weights) + ", not " + std::to_string(weights));
  if (head.begin != page.begin || head.n_cells != n_cells)
    return refused("it holds another range", std::to_string(head.begin) + " + " + std::to_string(head.n_cells));

  std::vector<FakeCell> cells;
  for (std::int32_t i = 0; i < head.n_cells; ++i) {
    const auto stored = read<StoredCell>(bytes, sizeof(Head) + static_cast<std::size_t>(i) * sizeof(StoredCell));
    if (stored.position != page.begin + i) return refused("its positions are wrong", std::to_string(stored.position));
    cells.push_back({TokenId{stored.token}, stored.position, stored.digest});
  }
  return cells;
}

}  // namespace fermata
