// Ends with 0 when this process may use AMX tiles, by using one. Run by tools/isa; a refusal ends it by SIGILL or
// SIGSEGV.
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace {
constexpr int kArchReqXcompPerm = 0x1023;
constexpr int kXfeatureTileData = 18;

struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64};
  std::uint8_t rows[16] = {16};
};
}  // namespace

int main() {
  if (syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureTileData) != 0) return 1;
  const TileConfig config;
  alignas(64) std::uint8_t out[1024];
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_stored(0, out, 64);
  _tile_release();
  return out[0];
}
