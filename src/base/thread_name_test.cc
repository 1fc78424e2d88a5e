#include "base/thread_name.h"

#include <sys/prctl.h>

#include <array>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace hearth {
namespace {

std::string name_after(std::string_view wanted) {
  std::array<char, 16> name{};
  std::jthread([&] {
    name_thread(wanted);
    ::prctl(PR_GET_NAME, name.data(), 0, 0, 0);
  }).join();
  return name.data();
}

TEST(ThreadName, IsTheOneGiven) {
  EXPECT_EQ(name_after("watch pods"), "watch pods");
}

TEST(ThreadName, IsCutWhereTheKernelCutsIt) {
  EXPECT_EQ(name_after("watch networkpolicies"), "watch networkpo");
}

}  // namespace
}  // namespace hearth
