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

}  // namespace
}  // namespace hearth::linux
