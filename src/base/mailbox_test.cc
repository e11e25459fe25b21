#include "base/mailbox.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace fermata {
namespace {

using Box = Mailbox<int>;

TEST(Mailbox, HandsOverInOrderOfArrivalWhateverTheLane) {
  Box box(4, 4);
  ASSERT_TRUE(box.put(Box::Lane::kWork, 1));
  ASSERT_TRUE(box.put(Box::Lane::kControl, 2));
  ASSERT_TRUE(box.put(Box::Lane::kWork, 3));
  EXPECT_EQ(box.take_all(), (std::vector<int>{1, 2, 3}));
  EXPECT_TRUE(box.take_all().empty());
}

TEST(Mailbox, AFloodOfWorkCannotKeepAnInterruptOut) {
  Box box(1, 2);
  ASSERT_TRUE(box.put(Box::Lane::kWork, 1));
  ASSERT_TRUE(box.put(Box::Lane::kWork, 2));
  const Result<void> refused = box.put(Box::Lane::kWork, 3);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kBusy);
  EXPECT_TRUE(refused.error().retryable);
  EXPECT_TRUE(box.put(Box::Lane::kControl, 4));
  EXPECT_FALSE(box.put(Box::Lane::kControl, 5));
  EXPECT_EQ(box.take_all(), (std::vector<int>{1, 2, 4}));
  EXPECT_TRUE(box.put(Box::Lane::kControl, 6));  // room again
}

TEST(Mailbox, ClosingWakesTheOwnerAndRefusesSenders) {
  Box box(1, 1);
  std::vector<int> taken{-1};
  std::thread owner([&] { taken = box.wait_and_take_all(seconds(60)); });
  box.close();
  owner.join();
  EXPECT_TRUE(taken.empty());
  EXPECT_FALSE(box.put(Box::Lane::kWork, 1));
}

TEST(Mailbox, NothingIsLostBetweenManySendersAndTheirOwner) {
  constexpr int kSenders = 4;
  constexpr int kEach = 2000;
  Box box(16, 16);
  std::vector<std::thread> senders;
  for (int s = 0; s < kSenders; ++s)
    senders.emplace_back([&box, s] {
      for (int i = 0; i < kEach; ++i)
        while (!box.put(i % 2 ? Box::Lane::kWork : Box::Lane::kControl, s * kEach + i)) std::this_thread::yield();
    });
  std::vector<int> last(kSenders, -1);
  int n = 0;
  while (n < kSenders * kEach)
    for (const int message : box.wait_and_take_all(seconds(60))) {
      const int sender = message / kEach;
      EXPECT_GT(message % kEach, last[static_cast<std::size_t>(sender)]);  // each sender's in its order
      last[static_cast<std::size_t>(sender)] = message % kEach;
      ++n;
    }
  for (std::thread& sender : senders) sender.join();
  EXPECT_TRUE(box.take_all().empty());
}

}  // namespace
}  // namespace fermata
