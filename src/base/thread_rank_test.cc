#include "base/thread_rank.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <thread>

#include <gtest/gtest.h>

namespace hearth {
namespace {

struct Standing {
  int policy = ::sched_getscheduler(0);
  int nice = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()));

  bool operator==(const Standing&) const = default;
};

TEST(ThreadRank, AThreadStepsBackWithThoseItStarts) {
  Standing own{.policy = -1, .nice = 0};
  Standing started{.policy = -1, .nice = 0};
  std::thread([&] {
    step_back();
    own = Standing();
    std::thread([&] { started = Standing(); }).join();
  }).join();
  EXPECT_EQ(own.policy, SCHED_BATCH);
  EXPECT_EQ(own.nice, Standing().nice);  // its share stays
  EXPECT_EQ(started, own);
}

TEST(ThreadRank, OthersStayWhereTheyAre) {
  const Standing before;
  std::thread([] { step_back(); }).join();
  EXPECT_EQ(Standing(), before);
}

}  // namespace
}  // namespace hearth
