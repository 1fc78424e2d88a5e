#include "reconcile/right_of_way.h"

#include <latch>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

namespace hearth::reconcile {
namespace {

using namespace std::chrono_literals;

constexpr Duration kForEver = 1h;

class RightOfWayTest : public ::testing::Test {
 protected:
  RightOfWay right_;
  RightOfWay::Turn turn_;
  std::stop_source stop_;
  const std::function<bool()> always_ = [] { return true; };
};

TEST_F(RightOfWayTest, NobodyWaitsWhenNobodyIsUrgent) {
  EXPECT_FALSE(right_.is_busy());
  right_.give_way(turn_, kForEver, stop_.get_token(), always_);
}

TEST_F(RightOfWayTest, AMomentAfterwardsItIsStillBusy) {
  {
    const RightOfWay::Urgent urgent(right_);
  }
  EXPECT_TRUE(right_.is_busy());
  right_.give_way(turn_, kForEver, stop_.get_token(), always_);
  EXPECT_FALSE(right_.is_busy());
}

TEST_F(RightOfWayTest, WaitsForTheLastOfThem) {
  std::optional<RightOfWay::Urgent> first(std::in_place, right_);
  std::optional<RightOfWay::Urgent> second(std::in_place, right_);
  std::atomic<bool> is_second_over = false;
  const std::jthread others([&] {
    std::this_thread::sleep_for(5ms);
    first.reset();
    std::this_thread::sleep_for(10ms);
    is_second_over = true;
    second.reset();
  });
  right_.give_way(turn_, kForEver, stop_.get_token(), always_);
  EXPECT_TRUE(is_second_over);
}

TEST_F(RightOfWayTest, AfterItsPatienceOneHasATurnAndThenWaitsAgain) {
  const RightOfWay::Urgent urgent(right_);
  right_.give_way(turn_, 1ms, stop_.get_token(), always_);
  ASSERT_GT(turn_.until, RightOfWay::Moment());
  turn_.until = RightOfWay::Moment::max();
  right_.give_way(turn_, kForEver, stop_.get_token(), always_);
  const auto over = std::chrono::steady_clock::now();
  turn_.until = over;
  right_.give_way(turn_, 1ms, stop_.get_token(), always_);
  EXPECT_GT(turn_.until, over);
}

TEST_F(RightOfWayTest, WhoCannotWaitAnyMoreDoesNot) {
  const RightOfWay::Urgent urgent(right_);
  int glances = 0;
  right_.give_way(turn_, kForEver, stop_.get_token(), [&] { return ++glances < 3; });
  EXPECT_EQ(glances, 3);
  EXPECT_EQ(turn_.until, RightOfWay::Moment());
}

TEST_F(RightOfWayTest, BrieflyMeansWithoutALull) {
  std::optional<RightOfWay::Urgent> urgent(std::in_place, right_);
  std::atomic<bool> is_over = false;
  const std::jthread other([&] {
    std::this_thread::sleep_for(5ms);
    is_over = true;
    urgent.reset();
  });
  right_.give_way_briefly(turn_, kForEver, stop_.get_token());
  EXPECT_TRUE(is_over);
  right_.give_way_briefly(turn_, kForEver, stop_.get_token());
  EXPECT_EQ(turn_.until, RightOfWay::Moment());
}

TEST_F(RightOfWayTest, BrieflyEndsToo) {
  const RightOfWay::Urgent urgent(right_);
  right_.give_way_briefly(turn_, 1ms, stop_.get_token());
  EXPECT_GT(turn_.until, RightOfWay::Moment());
  turn_.until = RightOfWay::Moment::max();
  right_.give_way_briefly(turn_, kForEver, stop_.get_token());
  turn_.until = RightOfWay::Moment();
  stop_.request_stop();
  right_.give_way_briefly(turn_, kForEver, stop_.get_token());
}

TEST_F(RightOfWayTest, AStopEndsTheWait) {
  const RightOfWay::Urgent urgent(right_);
  std::latch begun(1);
  std::jthread waiting([&](const std::stop_token& stop) {
    begun.count_down();
    right_.give_way(turn_, kForEver, stop, always_);
  });
  begun.wait();
  waiting.request_stop();
  waiting.join();
  EXPECT_EQ(turn_.until, RightOfWay::Moment());
}

}  // namespace
}  // namespace hearth::reconcile
