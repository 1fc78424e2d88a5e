#include "linux/latch.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace hearth::linux {
namespace {

TEST(Latch, LetsEveryoneThroughOnceItIsOpen) {
  Latch latch;
  int written = 0;
  std::atomic<int> seen = 0;
  std::vector<std::jthread> waiting;
  for (int i = 0; i < 16; ++i) {
    waiting.emplace_back([&] {
      latch.wait();
      seen += written;
    });
  }
  written = 1;
  EXPECT_EQ(seen, 0);
  latch.open();
  waiting.clear();
  EXPECT_EQ(seen, 16);
  latch.wait();  // still open
}

TEST(Latch, WaitsNoLongerThanUntil) {
  using std::chrono::steady_clock;
  Latch latch;
  const auto end = steady_clock::now() + std::chrono::milliseconds(2);
  EXPECT_FALSE(latch.wait_until(end));
  EXPECT_GE(steady_clock::now(), end);
  EXPECT_FALSE(latch.wait_until(steady_clock::now() - std::chrono::seconds(1)));
  const std::jthread opener([&] { latch.open(); });
  EXPECT_TRUE(latch.wait_until(steady_clock::now() + std::chrono::minutes(1)));
  EXPECT_TRUE(latch.wait_until({}));  // the past: open all the same
}

}  // namespace
}  // namespace hearth::linux
