#include "controllers/refill.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace hearth::controllers {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const Time kStart{seconds(1'700'000'000)};

// P12
TEST(ReplenishHold, OffByDefault) {
  ReplenishHold hold{Duration::zero()};
  EXPECT_EQ(hold.observe(10, 10, kStart), Duration::zero());
  EXPECT_EQ(hold.observe(3, 10, kStart), Duration::zero());
}

TEST(ReplenishHold, TheFirstLookNeverHolds) {
  ReplenishHold hold{seconds(5)};
  EXPECT_EQ(hold.observe(0, 10, kStart), Duration::zero());
}

TEST(ReplenishHold, EveryDropBeginsAnew) {
  ReplenishHold hold{seconds(5)};
  hold.observe(10, 10, kStart);
  EXPECT_EQ(hold.observe(8, 10, kStart), seconds(5));
  EXPECT_EQ(hold.observe(8, 10, kStart + seconds(2)), seconds(3));
  EXPECT_EQ(hold.observe(7, 10, kStart + seconds(3)), seconds(5));
  EXPECT_EQ(hold.observe(7, 10, kStart + seconds(8)), Duration::zero());
}

TEST(ReplenishHold, AFullPoolForgetsIt) {
  ReplenishHold hold{seconds(5)};
  hold.observe(10, 10, kStart);
  hold.observe(8, 10, kStart);
  EXPECT_EQ(hold.observe(8, 8, kStart), Duration::zero());
  EXPECT_EQ(hold.observe(8, 10, kStart), Duration::zero());
}

TEST(ReplenishHold, OwnCreatesRaiseWhatADropIsSeenAgainst) {
  ReplenishHold hold{seconds(5)};
  hold.observe(0, 10, kStart);
  hold.created(10);
  EXPECT_EQ(hold.observe(9, 10, kStart), seconds(5));
}

TEST(ReplenishHold, ARaiseIsNoDrop) {
  ReplenishHold hold{seconds(5)};
  hold.observe(5, 5, kStart);
  EXPECT_EQ(hold.observe(5, 10, kStart), Duration::zero());
}

// P13
TEST(RefillBucket, OffByDefault) {
  RefillBucket bucket{0};
  EXPECT_EQ(bucket.take(300, kStart).count, 300U);
}

TEST(RefillBucket, StartsFullAndFillsAtItsRate) {
  RefillBucket bucket{10};
  EXPECT_EQ(bucket.take(300, kStart).count, 10U);
  const auto none = bucket.take(300, kStart);
  EXPECT_EQ(none.count, 0U);
  EXPECT_EQ(none.wait, milliseconds(100));
  EXPECT_EQ(bucket.take(300, kStart + milliseconds(350)).count, 3U);
  EXPECT_EQ(bucket.take(300, kStart + seconds(60)).count, 10U) << "a second's worth is kept";
}

TEST(RefillBucket, SlowRatesGrantOneAtATime) {
  RefillBucket bucket{0.5};
  EXPECT_EQ(bucket.take(4, kStart).count, 1U);
  EXPECT_EQ(bucket.take(4, kStart + seconds(1)).count, 0U);
  EXPECT_EQ(bucket.take(4, kStart + seconds(1)).wait, seconds(1));
  EXPECT_EQ(bucket.take(4, kStart + seconds(2)).count, 1U);
}

TEST(RefillBucket, WhatWasNotUsedComesBack) {
  RefillBucket bucket{10};
  bucket.take(10, kStart);
  bucket.give_back(4);
  EXPECT_EQ(bucket.take(10, kStart).count, 4U);
  bucket.give_back(100);
  EXPECT_EQ(bucket.take(100, kStart).count, 10U);
}

TEST(RefillBucket, HugeAndTinyRatesAndBackwardClocks) {
  RefillBucket huge{1e300};
  EXPECT_EQ(huge.take(std::numeric_limits<std::uint32_t>::max(), kStart).count,
            std::numeric_limits<std::uint32_t>::max());
  RefillBucket tiny{1e-300};
  tiny.take(1, kStart);
  EXPECT_EQ(tiny.take(1, kStart).wait, std::chrono::hours(1));
  RefillBucket back{10};
  back.take(10, kStart);
  EXPECT_EQ(back.take(10, kStart - seconds(100)).count, 0U);
  EXPECT_EQ(back.take(10, kStart + milliseconds(100)).count, 1U);
}

// P10
TEST(SlowStart, DoublesAndCallsEachOnce) {
  std::mutex mutex;
  std::vector<std::uint32_t> seen;
  const SlowStart result = run_slow_start(100, 8, [&](std::uint32_t index) {
    const std::lock_guard lock(mutex);
    seen.push_back(index);
  });
  EXPECT_EQ(result.succeeded, 100U);
  EXPECT_EQ(result.first_failure, nullptr);
  std::ranges::sort(seen);
  ASSERT_EQ(seen.size(), 100U);
  for (std::uint32_t i = 0; i < 100; ++i) EXPECT_EQ(seen[i], i);
}

TEST(SlowStart, EndsWithTheFirstBatchThatFails) {
  struct {
    std::uint32_t fails_at;
    std::uint32_t called;
  } const cases[] = {{0, 1}, {1, 3}, {2, 3}, {3, 7}, {9, 15}, {63, 100}};
  for (const auto& [fails_at, called] : cases) {
    std::atomic<std::uint32_t> calls = 0;
    const SlowStart result = run_slow_start(100, 4, [&](std::uint32_t index) {
      ++calls;
      if (index == fails_at) throw std::runtime_error("no");
    });
    EXPECT_EQ(calls, called) << fails_at;
    EXPECT_EQ(result.succeeded, called - 1) << fails_at;
    EXPECT_NE(result.first_failure, nullptr);
  }
}

TEST(SlowStart, NothingIsNothing) {
  EXPECT_EQ(run_slow_start(0, 4, [](std::uint32_t) { FAIL(); }).succeeded, 0U);
}

TEST(SlowStart, NeverMoreThreadsThanAllowed) {
  std::atomic<int> now = 0;
  std::atomic<int> most = 0;
  run_slow_start(200, 3, [&](std::uint32_t) {
    const int mine = ++now;
    for (int seen = most; seen < mine && !most.compare_exchange_weak(seen, mine);) {
    }
    --now;
  });
  EXPECT_LE(most, 3);
}

}  // namespace
}  // namespace hearth::controllers
