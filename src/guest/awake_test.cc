#include "guest/awake.h"

#include <gtest/gtest.h>

namespace hearth::guest {
namespace {

using namespace std::chrono_literals;

const AwakeClock::Moment kStart = std::chrono::steady_clock::now();

TEST(AwakeClock, StandsStillWhileNobodyBeats) {
  AwakeClock clock;
  clock.beat(kStart);
  clock.beat(kStart + 1s);
  EXPECT_EQ(clock.now(kStart + 1s), kStart + 1s);
  // Asleep for an hour: of that no more than the beat that was due has passed.
  EXPECT_EQ(clock.now(kStart + 1h), kStart + 2s);
  EXPECT_EQ(clock.now(kStart + 1h + 1s), kStart + 3s) << "each pause counts once";
  clock.beat(kStart + 2h);
  EXPECT_EQ(clock.now(kStart + 2h), kStart + 3s);
}

TEST(AwakeClock, ABeatMayBeLate) {
  AwakeClock clock;
  clock.beat(kStart);
  EXPECT_EQ(clock.now(kStart + 2s), kStart + 2s);
  clock.beat(kStart + 2s);
  EXPECT_EQ(clock.now(kStart + 4s), kStart + 4s);
}

TEST(AwakeClock, AllTimeCountsWhileItIsNotKept) {
  AwakeClock clock;
  EXPECT_EQ(clock.now(kStart + 1h), kStart + 1h);
  clock.beat(kStart + 1h);
  clock.rest(kStart + 1h);
  EXPECT_EQ(clock.now(kStart + 2h), kStart + 2h);
  clock.beat(kStart + 2h);
  // Whoever stops keeping it notices what was before.
  clock.rest(kStart + 3h);
  EXPECT_EQ(clock.now(kStart + 3h), kStart + 2h + 1s);
}

TEST(AwakeDeadline, IsADeadline) {
  EXPECT_FALSE(AwakeDeadline::never().passed());
  EXPECT_EQ(AwakeDeadline::never().poll_milliseconds(), -1);
  EXPECT_TRUE(AwakeDeadline::after(0s).passed());
  EXPECT_EQ(AwakeDeadline::after(-1s).poll_milliseconds(), 0);
  EXPECT_GT(AwakeDeadline::after(1h).poll_milliseconds(), 3'000'000);
}

}  // namespace
}  // namespace hearth::guest
