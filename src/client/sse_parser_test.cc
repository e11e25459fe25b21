#include "client/sse_parser.h"

#include <gtest/gtest.h>

#include "base/limits.h"

namespace fermata::client {
namespace {

std::vector<SseEvent> events_of(std::string_view bytes, std::size_t piece = SIZE_MAX) {
  SseParser parser;
  std::vector<SseEvent> events;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size())))
    EXPECT_TRUE(parser.add(bytes.substr(0, piece), events).has_value());
  return events;
}

TEST(SseParser, ReadsWhatTheStandardSays) {
  const std::string_view stream =
      "\xEF\xBB\xBF: a comment\ndata: YHOO\ndata:+2\ndata\n\nevent: add\r\ndata:  two\rid: 7\r\n\r\nevent: "
      "none\n\ndata: cut";
  for (const std::size_t piece : {std::size_t{1}, std::size_t{2}, std::size_t{7}, stream.size()}) {
    const auto events = events_of(stream, piece);
    ASSERT_EQ(events.size(), 2u) << piece;
    EXPECT_EQ(events[0].type, "");
    EXPECT_EQ(events[0].data, "YHOO\n+2\n");
    EXPECT_EQ(events[1].type, "add");
    EXPECT_EQ(events[1].data, " two");
  }
}

TEST(SseParser, AnEventWithoutDataIsNone) { EXPECT_TRUE(events_of("event: x\n\n:\n\nretry: 3\n\n").empty()); }

TEST(SseParser, ATypeHoldsForOneEvent) {
  const auto events = events_of("event: a\ndata: 1\n\ndata: 2\n\n");
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].type, "");
}

TEST(SseParser, AnEventThatNeverEndsIsRefused) {
  SseParser parser;
  std::vector<SseEvent> events;
  const std::string line = "data: " + std::string(1 << 20, 'x') + "\n";
  Result<void> taken;
  std::size_t n = 0;
  for (; taken && n < limits::kSseEventBytesMax; n += line.size()) taken = parser.add(line, events);
  ASSERT_FALSE(taken.has_value());
  EXPECT_EQ(taken.error().code, Code::kTooLarge);
  EXPECT_TRUE(events.empty());
}

}  // namespace
}  // namespace fermata::client
