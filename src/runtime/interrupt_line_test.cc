#include "runtime/interrupt_line.h"

#include <gtest/gtest.h>

#include <array>

namespace fermata {
namespace {

constexpr GenerationId kA{1};
constexpr GenerationId kB{2};

TEST(InterruptLine, EndsAStepThatServesOnlyTheInterrupted) {
  InterruptLine line;
  line.begin_step(std::array{kA}, true);
  EXPECT_FALSE(line.raised());
  line.interrupt(kA);
  EXPECT_TRUE(line.raised());
}

TEST(InterruptLine, KeepsTheStepOfANeighbourUntilItIsInterruptedToo) {
  InterruptLine line;
  line.begin_step(std::array{kA, kB}, true);
  line.interrupt(kA);
  line.interrupt(kA);
  EXPECT_FALSE(line.raised());
  line.interrupt(kB);
  EXPECT_TRUE(line.raised());
}

TEST(InterruptLine, StrangersEndNothing) {
  InterruptLine line;
  line.begin_step(std::array{kA}, true);
  line.interrupt(kB);
  EXPECT_FALSE(line.raised());
}

TEST(InterruptLine, AStepThatMayNotBeAbortedIsNot) {
  InterruptLine line;
  line.begin_step(std::array{kA}, false);
  line.interrupt(kA);
  EXPECT_FALSE(line.raised());
}

TEST(InterruptLine, TheFlagFallsWithTheStep) {
  InterruptLine line;
  line.begin_step(std::array{kA}, true);
  line.interrupt(kA);
  line.end_step();
  EXPECT_FALSE(line.raised());
  line.begin_commands();
  line.begin_step(std::array{kA}, true);
  EXPECT_FALSE(line.raised()) << "the command of that interrupt has been taken";
}

TEST(InterruptLine, WhoWasInterruptedAfterTheCommandsWereTakenCountsInTheNextStep) {
  InterruptLine line;
  line.begin_commands();
  line.interrupt(kA);
  line.begin_step(std::array{kA}, true);
  EXPECT_TRUE(line.raised());
}

TEST(InterruptLine, BetweenStepsNothingIsRaised) {
  InterruptLine line;
  line.interrupt(kA);
  EXPECT_FALSE(line.raised());
  line.begin_commands();
  line.begin_step(std::array{kA}, true);
  EXPECT_FALSE(line.raised());
}

}  // namespace
}  // namespace fermata
