#include "base/ring.h"

#include <gtest/gtest.h>

#include <thread>

namespace fermata {
namespace {

TEST(Ring, IsBoundedAndKeepsOrder) {
  Ring<int> ring(2);
  EXPECT_TRUE(ring.push(1));
  EXPECT_TRUE(ring.push(2));
  EXPECT_FALSE(ring.push(3));
  EXPECT_EQ(ring.n_free(), 0u);
  EXPECT_EQ(ring.try_pop(), 1);
  EXPECT_TRUE(ring.push(4));
  EXPECT_EQ(ring.try_pop(), 2);
  EXPECT_EQ(ring.try_pop(), 4);
  EXPECT_EQ(ring.try_pop(), std::nullopt);
}

TEST(Ring, WakesOnceWhenItStopsBeingEmptyAndWhenClosed) {
  int n_wakes = 0;
  Ring<int> ring(8, [&] { ++n_wakes; });
  (void)ring.push(1);
  (void)ring.push(2);
  EXPECT_EQ(n_wakes, 1);
  (void)ring.try_pop();
  (void)ring.try_pop();
  (void)ring.push(3);
  EXPECT_EQ(n_wakes, 2);
  ring.close();
  EXPECT_EQ(n_wakes, 3);
}

TEST(Ring, AClosedRingGivesOutWhatItHasAndTakesNothing) {
  Ring<int> ring(8);
  (void)ring.push(1);
  ring.close();
  EXPECT_FALSE(ring.push(2));
  EXPECT_FALSE(ring.closed_and_empty());
  EXPECT_EQ(ring.pop(seconds(60)), 1);
  EXPECT_EQ(ring.pop(seconds(60)), std::nullopt);  // at once
  EXPECT_TRUE(ring.closed_and_empty());
}

TEST(Ring, AReaderThatIsGoneNeverBlocksItsWriter) {
  Ring<int> ring(1);
  (void)ring.push(1);
  ring.abandon();
  EXPECT_TRUE(ring.abandoned());
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(ring.push(i));
  EXPECT_EQ(ring.try_pop(), std::nullopt);
}

TEST(Ring, NothingIsLostBetweenWriterAndReader) {
  constexpr int kMessages = 20000;
  Ring<int> ring(16);
  std::thread writer([&] {
    for (int i = 0; i < kMessages; ++i)
      while (!ring.push(i)) std::this_thread::yield();
    ring.close();
  });
  int expected = 0;
  while (!ring.closed_and_empty()) {
    if (const auto message = ring.pop(seconds(60))) {
      EXPECT_EQ(*message, expected++);
    }
  }
  writer.join();
  EXPECT_EQ(expected, kMessages);
}

}  // namespace
}  // namespace fermata
