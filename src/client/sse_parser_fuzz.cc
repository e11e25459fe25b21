// Any bytes as a stream of events: what is read does not depend on how they were cut, and no data holds a carriage
// return.
//   input = cut byte, bytes
#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "client/sse_parser.h"

namespace {

using fermata::client::SseEvent;

std::vector<SseEvent> read(std::string_view bytes, std::size_t piece) {
  fermata::client::SseParser parser;
  std::vector<SseEvent> events;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size())))
    if (!parser.add(bytes.substr(0, piece), events)) break;
  return events;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::vector<SseEvent> whole = read(bytes, bytes.size());
  const std::vector<SseEvent> cut = read(bytes, 1 + data[0] % 8);
  FERMATA_CHECK(whole.size() == cut.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    FERMATA_CHECK(whole[i].type == cut[i].type && whole[i].data == cut[i].data);
    FERMATA_CHECK(whole[i].data.find('\r') == std::string_view::npos);
  }
  return 0;
}
